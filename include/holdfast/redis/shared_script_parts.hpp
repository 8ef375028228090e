// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/scripts.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts::parts {

// The scripts of a shared_mutex. While readers have it, the lock's own key has a value that is no token, and expires
// with the last of them: so a client that knows only that key is kept out, as by a writer.
//
// - readers: a ZSET, owner token -> when its lease ends, in ms on the server's clock. Only what a value of the lock
//   vouches for counts: that of a read phase, or `beside`. Records of an earlier phase are dropped when one begins.
// - phase: a HASH. `writer`, `reader`: until when one is remembered as waiting; a reader that gets in while no writer
//   waits ends it for all readers. `turn`: until when readers have their turn, or until the last of them has left.
//   `waiting`: the readers that wait and said who they are; `called`: those of them whose turn it is and who have not
//   come. `queued` and `known`: what `writer` and `reader` are if one in the queue, or of `waiting`, set the
//   longest, and no other was refused after it.
//   `beside`: the token of the exclusive lease that stands beside shared ones of the same owner, when it becomes
//   one, or has been one; `beside_until`: when that lease ends. Its own renewals move it, those of readers do not: the
//   key is theirs from then on, if its release was lost with what a server forgot. The hash expires when none of these
//   matters. One that waits for less shortens no mark of another.
//
// A lease lasts through the millisecond of its end, as a key does. The writes that need memory come first; the key of
// the lock is written last: if one before it fails, nothing is taken. A renewal and a release, but for a roll-back that
// stays in the queue, begin with a write that needs none: a server without memory lets a script go on that has written;
// the SET of `note` only asks whether this one does. That a release cannot write the phase does not undo it. A mark
// of a wait, or of a turn, that is further ahead than any that is written does not count: the clock was set back.

inline constexpr std::string_view shared_keys = "local readers, phase = KEYS[2], KEYS[3]\n";
inline constexpr std::string_view shared_keys_after_fence = "local readers, phase = KEYS[3], KEYS[4]\n";
inline constexpr std::string_view queue_after_phase = "local queue, next = KEYS[4], KEYS[5]\n";
inline constexpr std::string_view queue_after_fence_and_phase = "local queue, next = KEYS[5], KEYS[6]\n";
inline constexpr std::string_view beside =
    "local beside, waits, waiter, score = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]\n";
inline constexpr std::string_view beside_by_clock =
    "local beside, waits, waiter, score = ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]\n";
inline constexpr std::string_view beside_by_count =
    "local beside, waits, waiter, score = ARGV[9], tonumber(ARGV[10]), ARGV[11], ARGV[12]\n";
inline constexpr std::string_view called_before = "local before = called_readers\n";

// `note` writes the phase, and a new one only if it may expire. `reads`: the lock's value vouches for the readers.
inline constexpr std::string_view look_at_phase = R"lua(
local at = redis.call('TIME')
local now = at[1] * 1000 + math.floor(at[2] / 1000)
local marks = redis.call('HMGET', phase, 'writer', 'reader', 'turn', 'beside', 'queued', 'waiting', 'called',
  'known', 'beside_until')
local function until_then(mark, most)
  local t = tonumber(mark) or 0
  return t <= now + most and t or 0
end
local writer, reader = until_then(marks[1], 60000), until_then(marks[2], 60000)
local turn, companion = until_then(marks[3], 1000), marks[4] or ''
local queued, known = tonumber(marks[5]) or 0, tonumber(marks[8]) or 0
local endless = 2 ^ 53
local beside_until = tonumber(marks[9]) or endless
local waiting_readers = reader > now and marks[6] or ' '
local called_readers = turn > now and marks[7] or ' '
local function ms(n) return string.format('%.0f', n) end
local function note()
  if redis.call('PTTL', phase) == -2 then
    redis.call('SET', phase, '', 'XX')
    redis.call('PEXPIRE', phase, 0)
  end
  redis.call('HSET', phase, 'writer', ms(writer), 'reader', ms(reader), 'turn', ms(turn), 'beside', companion,
    'queued', ms(queued), 'waiting', waiting_readers, 'called', called_readers, 'known', ms(known),
    'beside_until', ms(beside_until))
  local most = math.max(writer, reader, turn) - now
  if companion ~= '' then most = math.max(most, redis.call('PTTL', KEYS[1]), tonumber(ARGV[2]) or 0) end
  redis.call('PEXPIRE', phase, ms(math.max(most, 0)))
end
)lua";

inline constexpr std::string_view look_at_value = "local value = redis.pcall('GETRANGE', KEYS[1], '0', '32')\n";

// A writer beside readers whose own lease is over has the key no more.
inline constexpr std::string_view look_at_reader = R"lua(
local reads = value == 'holdfast:readers' or (companion ~= '' and value == companion)
local over = reads and value == companion and beside_until < now
if over then value = 'holdfast:readers' end
local ends_at = redis.call('ZSCORE', readers, ARGV[1])
ends_at = reads and ends_at
local ours = ends_at and tonumber(ends_at) >= now
)lua";

// A reader that is known to wait is called with the others, and has come when it asks.
inline constexpr std::string_view come = R"lua(
local function without(list)
  local from, to = string.find(list, ' ' .. waiter .. ' ', 1, true)
  return from and string.sub(list, 1, from) .. string.sub(list, to + 1) or list
end
if waiter then
  waiting_readers = without(waiting_readers)
  local others = without(called_readers)
  if others == ' ' and called_readers ~= ' ' then turn = math.min(turn, now + 100) end
  called_readers = others
end
)lua";

inline constexpr std::string_view refuse_reader = R"lua(
if ours then
  refused = false
elseif beside ~= '' then
  refused = value ~= beside
  if refused then left = math.max(left, 0) end
elseif left == -2 or value == 'holdfast:readers' then
  refused = writer > now and turn <= now
  if refused then left = writer - now end
else
  refused = true
end
if refused and waits > 0 then
  local mark, named = now + waits, waiter and #waiting_readers < 4096
  known = named and (mark >= reader and mark or known) or 0
  reader = math.max(reader, mark)
  if named then waiting_readers = waiting_readers .. waiter .. ' ' end
  note()
end
)lua";

// Lets the token in. A lock that stands beside it keeps its value, until its own lease is over.
inline constexpr std::string_view join = R"lua(
local function join()
  local ends = now + ARGV[2]
  if ends_at and tonumber(ends_at) > ends then ends = tonumber(ends_at) end
  if not reads then redis.call('PEXPIRE', readers, 0) end
  redis.call('ZREMRANGEBYSCORE', readers, '-inf', '(' .. ms(now))
  local last = redis.call('ZREVRANGE', readers, 0, 0, 'WITHSCORES')
  redis.call('ZADD', readers, ms(ends), ARGV[1])
  local rest = ms(math.max(last[2] or 0, ends) - now)
  redis.call('PEXPIRE', readers, rest)
  if over or redis.call('PTTL', KEYS[1]) == -2 then
    redis.call('SET', KEYS[1], 'holdfast:readers', 'PX', rest)
  elseif redis.call('PTTL', KEYS[1]) < tonumber(rest) then
    redis.call('PEXPIRE', KEYS[1], rest)
  end
end
)lua";

// That it may leave is tried, so that a user without the right to it gets no lock.
inline constexpr std::string_view take_shared = R"lua(
if beside ~= '' and beside ~= companion then beside_until = left < 0 and endless or now + left end
companion = beside ~= '' and beside or reads and not over and companion or ''
if beside == '' and writer <= now then
  reader = 0
  waiting_readers = ' '
end
note()
redis.call('ZREM', readers, '')
join()
)lua";

inline constexpr std::string_view only_ours = "\nif not ours then return 0 end\n";

inline constexpr std::string_view extend_shared = R"lua(
join()
if companion ~= '' then
  if value == 'holdfast:readers' then companion = '' end
  note()
end
)lua";

// It is no newcomer: a writer that waits does not matter.
inline constexpr std::string_view only_without_writer = R"lua(
local free = redis.call('PTTL', KEYS[1]) == -2
if not ours and not free and value ~= 'holdfast:readers' then return 0 end
)lua";

// A reader that does not wait here any more is not waited for.
inline constexpr std::string_view leave_shared = R"lua(
if waiter then
  if before == ' ' or called_readers ~= ' ' or redis.call('PTTL', KEYS[1]) ~= -2 then
    if marks[1] then pcall(note) end
    return 0
  end
  turn = 0
  pcall(note)
end
)lua";

// The readers whose leases are over do not hold the lock. With the last one their turn ends, too: a writer need not
// wait for the time of it.
inline constexpr std::string_view release_shared = R"lua(
if not waiter then
  if not ends_at then return 0 end
  redis.call('ZREM', readers, ARGV[1])
  redis.call('ZREMRANGEBYSCORE', readers, '-inf', '(' .. ms(now))
  local last = redis.call('ZREVRANGE', readers, 0, 0, 'WITHSCORES')
  if last[1] then
    if value == 'holdfast:readers' then redis.call('PEXPIRE', KEYS[1], ms(last[2] - now)) end
    return ours and 1 or 0
  end
  if value ~= 'holdfast:readers' then
    companion = ''
    note()
    return ours and 1 or 0
  end
  if turn > now and called_readers == ' ' then
    turn = 0
    pcall(note)
  end
  redis.call('PEXPIRE', KEYS[1], 0)
end
)lua";

// Readers wait for a writer that is called: none is told then, but for writers that do not know the queue.
inline constexpr std::string_view call_writer = R"lua(
call_next()
if next and writer > now and writer == queued and redis.call('PTTL', next) > 0 then return 1 end
)lua";

}  // namespace holdfast::redis::scripts::parts
