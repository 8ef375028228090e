// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/scripts.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts::parts {

// What the writers of a shared_mutex do; `shared_script_parts` says what its keys mean.

inline constexpr std::string_view refuse_writer = R"lua(
local sole = false
if beside ~= '' and value == 'holdfast:readers' then
  redis.call('ZREMRANGEBYSCORE', readers, '-inf', '(' .. ms(now))
  local two = redis.call('ZREVRANGE', readers, 0, 1)
  sole = two[1] == beside and not two[2]
end
if sole then
  refused = false
elseif left == -2 and (beside ~= '' or turn > now) then
  refused = true
  left = math.max(0, turn - now)
end
)lua";

inline constexpr std::string_view mark_writer = R"lua(
local stands = waiter and score ~= '0'
if refused and waits > 0 and (value == 'holdfast:readers' or stands) then
  local mark = now + waits
  queued = stands and (mark >= writer and mark or queued) or 0
  writer = math.max(writer, mark)
  note()
end
)lua";

// As long as other writers are in the queue, it is known that one waits. Without the keys of the queue, its own mark is
// no longer known, and that of one in the queue is. A single attempt leaves no mark, and ends none.
inline constexpr std::string_view set_exclusive = R"lua(
if reserved_for_us then redis.pcall('PEXPIRE', next, 0) end
if waiter then redis.pcall('ZREM', queue, waiter) end
if value ~= ARGV[1] then
  companion, beside_until = left ~= -2 and ARGV[1] or '', now + math.max(left, ARGV[2])
  if companion ~= '' or marks[1] then
    local others = writer == queued
    if next then others = redis.call('PTTL', queue) ~= -2 end
    if not others and waits > 0 then writer = 0 end
    note()
  end
  if left == -2 and redis.call('PTTL', readers) ~= -2 then
    redis.call('PEXPIRE', readers, 0)
  end
  local ttl = left > tonumber(ARGV[2]) and ms(left) or ARGV[2]
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ttl)
  local kept = redis.pcall('PEXPIRE', KEYS[1], ttl)
  if type(kept) == 'table' then
)lua";
inline constexpr std::string_view end_exclusive = "  end\nend\n";
inline constexpr auto take_exclusive = joined<set_exclusive, take_back, end_exclusive>;

// Before a renewal. The write that needs no memory comes first.
inline constexpr std::string_view move_beside_until = R"lua(
local own = redis.pcall('HMGET', KEYS[3], 'beside', 'beside_until')
if own[1] == ARGV[1] then
  local at = redis.call('TIME')
  local ends = at[1] * 1000 + math.floor(at[2] / 1000) + ARGV[2]
  redis.call('ZREM', KEYS[2], '')
  redis.call('HSET', KEYS[3], 'beside_until', string.format('%.0f', math.max(own[2] or 0, ends)))
end
)lua";

// Readers of the same owner stay, and others may come. Those that waited have their turn: until all that are known
// have come, and the last has left. After a roll-back, also of one that is no waiter (''), they have not: with a turn
// on some servers alone, neither side would get a majority; with those of several roll-backs, readers would pass a
// writer that waits.
inline constexpr std::string_view release_exclusive = R"lua(
local ours, rolls_back = value == ARGV[1], waiter
if waiter == '' then waiter = nil end
if next and waiter and score ~= '0' then enqueue() end
if ours then
  local last = companion == ARGV[1] and redis.call('ZREVRANGE', readers, 0, 0, 'WITHSCORES') or {}
  if last[1] and tonumber(last[2]) >= now then
    redis.call('PEXPIRE', KEYS[1], ms(last[2] - now))
    redis.call('SET', KEYS[1], 'holdfast:readers', 'PX', ms(last[2] - now + 1))
    redis.call('PEXPIRE', KEYS[1], ms(last[2] - now))
  else
    redis.call('PEXPIRE', KEYS[1], 0)
  end
  companion = ''
  if not rolls_back and reader > now and (reader ~= known or waiting_readers ~= ' ') then
    local longest = 100
    for one in string.gmatch(waiting_readers, '%S+') do
      longest = math.max(longest, tonumber(string.sub(one, 17, 20), 16) or 0)
    end
    turn = now + math.min(longest, 1000)
    called_readers, waiting_readers = waiting_readers, ' '
  end
  if not rolls_back then reader = 0 end
end
)lua";

// The last writer that leaves the queue lets readers come.
inline constexpr std::string_view leave_or_stay_exclusive = R"lua(
local ended = false
if next and waiter then
  if score == '0' then redis.pcall('ZREM', queue, waiter) end
  if redis.pcall('GETRANGE', next, '0', '63') == waiter then redis.call('PEXPIRE', next, 0) end
  ended = score == '0' and writer > now and writer == queued and redis.call('PTTL', queue) == -2
    and redis.call('PTTL', next) == -2
end
if ended then writer = 0 end
if (ours or ended) and marks[1] then pcall(note) end
if not ours and (not waiter or redis.call('PTTL', KEYS[1]) ~= -2) then
  if ended then redis.pcall('PUBLISH', ARGV[2], '') end
  return 0
end
if redis.call('PTTL', KEYS[1]) ~= -2 then next = nil end
)lua";

}  // namespace holdfast::redis::scripts::parts
