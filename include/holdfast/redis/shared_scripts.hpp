// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/scripts.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// The scripts of a shared_mutex. While readers have it, the lock's own key has a value that is no token, and expires
// with the last of them: so whoever knows only that key is kept out, as by a writer.
//
// - readers: a ZSET, owner token -> when its lease ends, in ms on the server's clock. Only what a value of the lock
//   vouches for counts: that of a read phase, or `beside`. Records of an earlier phase are dropped when one begins.
// - phase: a HASH. `writer`, `reader`: until when one is remembered as waiting; a reader that gets in while no writer
//   waits ends it for all readers. `turn`: until when readers have their turn, or until the last of them has left.
//   `beside`: the token of the exclusive lease that stands beside shared ones of the same owner, when it becomes
//   one, or has been one. It expires when none of these matters.
//
// A lease lasts through the millisecond of its end, as a key does. The writes that need memory come first; the key of
// the lock is written last: if one before it fails, nothing is taken. A renewal and a release begin with a write that
// needs none: a server without memory lets a script go on that has written. That a release cannot write the phase does
// not undo it. A mark that is further ahead than any that is written does not count: the clock was set back.

namespace parts {

inline constexpr std::string_view shared_keys = "local readers, phase = KEYS[2], KEYS[3]\n";
inline constexpr std::string_view shared_keys_after_fence = "local readers, phase = KEYS[3], KEYS[4]\n";
inline constexpr std::string_view queue_after_phase = "local queue, next = KEYS[4], KEYS[5]\n";
inline constexpr std::string_view beside = "local beside, waits = ARGV[3], tonumber(ARGV[4])\n";
inline constexpr std::string_view beside_by_clock = "local beside, waits = ARGV[6], tonumber(ARGV[7])\n";
inline constexpr std::string_view beside_by_count = "local beside, waits = ARGV[9], tonumber(ARGV[10])\n";

// `note` writes the phase. `reads`: the lock's value vouches for the readers.
inline constexpr std::string_view look_at_phase = R"lua(
local at = redis.call('TIME')
local now = at[1] * 1000 + math.floor(at[2] / 1000)
local marks = redis.call('HMGET', phase, 'writer', 'reader', 'turn', 'beside')
local function until_then(mark, most)
  local t = tonumber(mark) or 0
  return t <= now + most and t or 0
end
local writer, reader = until_then(marks[1], 60000), until_then(marks[2], 60000)
local turn, companion = until_then(marks[3], 100), marks[4] or ''
local function ms(n) return string.format('%.0f', n) end
local function note()
  redis.call('HSET', phase, 'writer', ms(writer), 'reader', ms(reader), 'turn', ms(turn), 'beside', companion)
  local most = math.max(writer, reader, turn) - now
  if companion ~= '' then most = math.max(most, redis.call('PTTL', KEYS[1]), tonumber(ARGV[2]) or 0) end
  redis.call('PEXPIRE', phase, ms(math.max(most, 0)))
end
)lua";

inline constexpr std::string_view look_at_value = R"lua(
local value = redis.pcall('GETRANGE', KEYS[1], 0, 32)
)lua";

inline constexpr std::string_view look_at_reader = R"lua(
local reads = value == 'holdfast:readers' or (companion ~= '' and value == companion)
local score = redis.call('ZSCORE', readers, ARGV[1])
score = reads and score
local ours = score and tonumber(score) >= now
)lua";

inline constexpr std::string_view refuse = R"lua(
if refused then return -2 - left - (type(value) == 'table' and 4503599627370496 or 0) end
)lua";

inline constexpr std::string_view refuse_reader = R"lua(
if ours then
  refused = false
elseif beside ~= '' then
  refused = value ~= beside
  left = math.max(left, 0)
elseif left == -2 or value == 'holdfast:readers' then
  refused = writer > now and turn <= now
  if refused then left = writer - now end
else
  refused = true
end
if refused and waits > 0 then
  reader = now + waits
  note()
end
)lua";

// Lets the token in. A lock that stands beside it keeps its value.
inline constexpr std::string_view join = R"lua(
local function join()
  local ends = now + ARGV[2]
  if score and tonumber(score) > ends then ends = tonumber(score) end
  if not reads then redis.call('PEXPIRE', readers, 0) end
  redis.call('ZREMRANGEBYSCORE', readers, '-inf', '(' .. ms(now))
  redis.call('ZADD', readers, ms(ends), ARGV[1])
  local last = redis.call('ZREVRANGE', readers, 0, 0, 'WITHSCORES')
  local rest = ms(last[2] - now)
  redis.call('PEXPIRE', readers, rest)
  if redis.call('PTTL', KEYS[1]) == -2 then
    redis.call('SET', KEYS[1], 'holdfast:readers', 'PX', rest)
  elseif redis.call('PTTL', KEYS[1]) < tonumber(rest) then
    redis.call('PEXPIRE', KEYS[1], rest)
  end
end
)lua";

// That it may leave is tried, so that a user without the right to it gets no lock.
inline constexpr std::string_view take_shared = R"lua(
companion = beside ~= '' and beside or reads and companion or ''
if beside == '' and writer <= now then reader = 0 end
note()
redis.call('ZREM', readers, '')
join()
)lua";

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
elseif refused and waits > 0 and value == 'holdfast:readers' then
  writer = now + waits
  note()
end
)lua";

inline constexpr std::string_view take_exclusive = R"lua(
if value ~= ARGV[1] then
  companion = left ~= -2 and ARGV[1] or ''
  if companion ~= '' or marks[1] then
    writer = 0
    note()
  end
  if left == -2 and redis.call('PTTL', readers) ~= -2 then
    redis.call('PEXPIRE', readers, 0)
  end
  local ttl = left > tonumber(ARGV[2]) and ms(left) or ARGV[2]
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ttl)
  if type(redis.pcall('PEXPIRE', KEYS[1], ttl)) == 'table' then
    redis.call('SET', KEYS[1], '', 'PX', 1)
    redis.call('PEXPIRE', KEYS[1], 1)
  end
end
)lua";

}  // namespace parts

// acquire, exclusive: KEYS lock [fence] readers phase; ARGV token ttl [batch fence-lifetime bound [proposal max-lead
// floor]] beside waits. As acquire, without the queue. `beside`: '' or the token of a shared lease; then it is granted
// if that is the only one, and stands beside it. `waits`: how long readers are to be kept out, in ms, if it is refused
// because of them.
inline constexpr script acquire_exclusive{
    joined<parts::look, parts::shared_keys, parts::beside, parts::look_at_phase, parts::refuse_writer, parts::refuse,
           parts::take_exclusive, parts::answer_yes>,
    "a4ec61072058fc66a4d5c5e57fd8b15d26032315"};

inline constexpr script acquire_exclusive_by_clock{
    joined<parts::look, parts::shared_keys_after_fence, parts::beside_by_clock, parts::look_at_phase,
           parts::refuse_writer, parts::refuse, parts::look_at_fence, parts::fence_by_clock, parts::take_exclusive,
           parts::answer_fence>,
    "3e72a119420a5b326e303de5168b0425f5b5238d"};

inline constexpr script acquire_exclusive_by_count{
    joined<parts::look, parts::shared_keys_after_fence, parts::beside_by_count, parts::look_at_phase,
           parts::refuse_writer, parts::refuse, parts::look_at_fence, parts::fence_by_count, parts::take_exclusive,
           parts::answer_fence>,
    "d46a5979a3976e9f5805f1140cb689dbc3c4c2fd"};

// acquire, shared: the same. `beside`: '' or the token of an exclusive lease, beside which it is to stand. `waits`: how
// long it is remembered that a reader waits, if it is refused.
inline constexpr script acquire_shared{
    joined<parts::look, parts::shared_keys, parts::beside, parts::look_at_phase, parts::look_at_reader,
           parts::refuse_reader, parts::refuse, parts::join, parts::take_shared, parts::answer_yes>,
    "2bd06b73b525805b10032a03dea2b25ef0d2b785"};

inline constexpr script acquire_shared_by_clock{
    joined<parts::look, parts::shared_keys_after_fence, parts::beside_by_clock, parts::look_at_phase,
           parts::look_at_reader, parts::refuse_reader, parts::refuse, parts::look_at_fence, parts::fence_by_clock,
           parts::join, parts::take_shared, parts::answer_fence>,
    "0dd362f0462c712760f79a90a7d34132242732d1"};

inline constexpr script acquire_shared_by_count{
    joined<parts::look, parts::shared_keys_after_fence, parts::beside_by_count, parts::look_at_phase,
           parts::look_at_reader, parts::refuse_reader, parts::refuse, parts::look_at_fence, parts::fence_by_count,
           parts::join, parts::take_shared, parts::answer_fence>,
    "bde907e96abf717817bc04bc8dca732c50c54f9c"};

namespace parts {

inline constexpr std::string_view only_ours = R"lua(
if not ours then return 0 end
)lua";

inline constexpr std::string_view extend_shared = R"lua(
join()
if companion ~= '' then note() end
return 1
)lua";

// It is no newcomer: a writer that waits does not matter.
inline constexpr std::string_view only_without_writer = R"lua(
local free = redis.call('PTTL', KEYS[1]) == -2
if not ours and not free and value ~= 'holdfast:readers' then return 0 end
)lua";

// The readers whose leases are over do not hold the lock. With the last one their turn ends, too: a writer need not
// wait for the time of it.
inline constexpr std::string_view release_shared = R"lua(
if not score then return 0 end
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
if turn > now then
  turn = 0
  pcall(note)
end
redis.call('PEXPIRE', KEYS[1], 0)
)lua";

// Readers of the same owner stay, and others may come. Those that waited have their turn.
inline constexpr std::string_view release_exclusive = R"lua(
if value ~= ARGV[1] then return 0 end
local last = companion == ARGV[1] and redis.call('ZREVRANGE', readers, 0, 0, 'WITHSCORES') or {}
if last[1] and tonumber(last[2]) >= now then
  redis.call('PEXPIRE', KEYS[1], ms(last[2] - now))
  redis.call('SET', KEYS[1], 'holdfast:readers', 'PX', ms(last[2] - now + 1))
  redis.call('PEXPIRE', KEYS[1], ms(last[2] - now))
else
  redis.call('PEXPIRE', KEYS[1], 0)
end
companion = ''
if reader > now then
  turn = now + 100
  reader = 0
end
if marks[1] then pcall(note) end
)lua";

}  // namespace parts

// confirm, shared: KEYS lock fence readers phase; ARGV as confirm.
inline constexpr script confirm_shared{
    joined<parts::look_at_value, parts::shared_keys_after_fence, parts::look_at_phase, parts::look_at_reader,
           parts::only_ours, parts::raise_fence>,
    "1acc6ec49e141b9090087d493096976e81f03dfe"};

// extend, shared: KEYS lock readers phase; ARGV token ttl. Only its own record, and only if it is there.
inline constexpr script extend_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::look_at_phase, parts::look_at_reader, parts::only_ours,
           parts::join, parts::extend_shared>,
    "5e48db3141472c62bdfc8574f911e183b11fa142"};

// reacquire, shared: the same. As extend, and goes in if no writer has the lock.
inline constexpr script reacquire_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::look_at_phase, parts::look_at_reader,
           parts::only_without_writer, parts::join, parts::extend_shared>,
    "3596f541f93de8906c9b13713fa8998107ec07f7"};

// release, shared: KEYS lock readers phase [queue next]; ARGV token channel. As release. All are told when the last
// reader leaves.
inline constexpr script release_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::queue_after_phase, parts::look_at_phase,
           parts::look_at_reader, parts::release_shared, parts::call_next, parts::tell_all>,
    "cbd970e253af823ed48187d23525409af869cc2c"};

// release, exclusive: the same.
inline constexpr script release_exclusive{
    joined<parts::look_at_value, parts::shared_keys, parts::queue_after_phase, parts::look_at_phase,
           parts::release_exclusive, parts::call_next, parts::tell_all>,
    "5525bfd1a109107d842dd88e8f4940c71b993bc8"};

}  // namespace holdfast::redis::scripts
