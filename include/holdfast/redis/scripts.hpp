// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/fence_script_parts.hpp>
#include <holdfast/redis/script.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

namespace scripts {

// acquire: KEYS lock [fence] [queue next]; ARGV token ttl [batch fence-lifetime bound [proposal max-lead floor]]
// [waiter score]. If the lock is the token's now, or was already, it answers the fence, or 1 without one. If another
// token has it, or it is reserved for another waiter, it answers -2 - PTTL, which is not positive, and the waiter is in
// the queue, if its score is not 0. If it is positive, and that of the last in the queue is greater, the answer is both
// numbers: -2 - PTTL, and that score.
// - GETRANGE is a pcall: a key of another type counts as held, and the answer is less by `other_type_mark`. It reads
//   one byte more than a token has, since the value may be long.
// - PTTL is -2 if there is no key: this tells an empty value from none.
// - A renewal and a release need PTTL and PEXPIRE. A user without the right to one of them gets an error, and no lock.
// - Where no client waits, the first write is a SET: a server without memory lets a script go on that has written.
// - The fence is written before the lock: if that fails, nothing is taken.
// - Each call that may be refused has its own line: servers name the line.
// - Arguments are written as text: to make one of a number takes a server as long as a short command.
// - Where the lock is free, those in the queue go first: its holder's lease has ended, or another client gave it back.
//   A waiter that was called, and comes when its reservation is over, has its old place among them.
// - A score that is negative is the time waited so far, in µs: then no client has to know the clock of the server.
// - A score of more than an hour ago counts as that, and one of more than a minute from now, too: no client may be
//   ahead of all others for good, and none behind them.
// - Only a missing right to the queue is an error, before a lock is given back, or that the server is a replica:
//   waiters leave that. What else is wrong with its keys, or a server without memory, makes waiters slower: they are
//   told half a second. A user who may not call others stays in no queue: those who wait for it would not hear of its
//   releases.

namespace parts {

inline constexpr std::string_view look_at_left = "local left = redis.call('PTTL', KEYS[1])\n";
inline constexpr std::string_view read_value = R"lua(
local value = redis.pcall('GETRANGE', KEYS[1], '0', '32')
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
  redis.call('GETRANGE', KEYS[1], '0', '32')
end
)lua";
inline constexpr std::string_view compare_value = "local refused = left ~= -2 and value ~= ARGV[1]\n";
inline constexpr auto look_at_owner = joined<read_value, compare_value>;
inline constexpr auto look = joined<look_at_left, look_at_owner>;

inline constexpr std::string_view look_at_reservation = R"lua(
local reserved = next and redis.pcall('GETRANGE', next, '0', '63')
local reserved_for_us = waiter and reserved == waiter
)lua";

// Where there is no key of the lock, and either none of its queue and of a reservation, or one for us, who was taken
// out of the queue then, nothing else is looked at.
inline constexpr std::string_view unless_at_once = R"lua(
local at_once = left == -2 and (reserved_for_us or reserved == '' and redis.pcall('PTTL', queue) == -2)
if not at_once then
)lua";
inline constexpr std::string_view end_of_rivals = "end\n";

// Whose turn it is. Without the last two keys, whoever comes.
inline constexpr std::string_view keys = "local queue, next = KEYS[2], KEYS[3]\n";
inline constexpr std::string_view keys_after_fence = "local queue, next = KEYS[3], KEYS[4]\n";
inline constexpr std::string_view waiter = "local waiter, score = ARGV[3], ARGV[4]\n";
inline constexpr std::string_view waiter_by_clock = "local waiter, score = ARGV[6], ARGV[7]\n";
inline constexpr std::string_view waiter_by_count = "local waiter, score = ARGV[9], ARGV[10]\n";

inline constexpr std::string_view enqueue = R"lua(
local function enqueue()
  local time = redis.call('TIME')
  local clock = time[1] * 1000000 + time[2]
  local at = tonumber(score) < 0 and clock + score or score
  at = math.min(math.max(at, clock - 3600000000), clock + 60000000)
  local function refused(answer)
    local why = type(answer) == 'table' and answer.err or ''
    return string.find(why, 'NOPERM', 1, true) or string.find(why, 'ACL failure', 1, true)
      or string.find(why, 'The user executing', 1, true) or string.find(why, 'READONLY', 1, true)
  end
  if refused(redis.pcall('ZRANK', queue, waiter)) then redis.call('ZRANK', queue, waiter) end
  local added = redis.pcall('ZADD', queue, string.format('%.0f', at), waiter)
  if refused(added) then redis.call('ZADD', queue, string.format('%.0f', at), waiter) end
  if type(added) ~= 'number' then return end
  if refused(redis.pcall('PEXPIRE', queue, '3600000')) or refused(redis.pcall('ZPOPMIN', queue, '0'))
    or refused(redis.pcall('ZREM', queue, '')) then
    redis.pcall('ZREM', queue, waiter)
    redis.call('PEXPIRE', queue, '3600000')
    redis.call('ZPOPMIN', queue, '0')
    redis.call('ZREM', queue, '')
  end
end
)lua";

// Calls the first waiter to whose inbox somebody listens, unless one is waited for. The message is short, also if the
// name of the lock is not. Of very many that are gone, some are left for the next call.
inline constexpr std::string_view call_next = R"lua(
local function call_next()
  if not next or redis.call('PTTL', queue) == -2 then return end
  local reservation = redis.call('PTTL', next)
  if reservation >= 0 and reservation <= 1000 then return end
  local told
  local left = 1000
  repeat
    local popped = redis.pcall('ZPOPMIN', queue)
    local first = popped[1]
    if not first then return end
    local lock = #KEYS[1] <= 512 and KEYS[1] or ''
    told = redis.pcall('PUBLISH', 'holdfast:wake:' .. string.sub(first, 1, 16), string.sub(first, 17) .. ' ' .. lock)
    if type(told) ~= 'number' then
      redis.pcall('ZADD', queue, popped[2], first)
      redis.pcall('PEXPIRE', queue, '3600000')
      return
    end
    if told > 0 then
      local reserve = tonumber(string.sub(first, 17, 20), 16) or 50
      redis.call('SET', next, first, 'PX', math.max(50, math.min(reserve, 1000)))
    end
    left = left - 1
  until told > 0 or left == 0
end
)lua";

// After `look_at_reservation`.
inline constexpr std::string_view stand_in_line = R"lua(
local waiting = left == -2 and next and redis.pcall('PTTL', queue)
if type(waiting) == 'number' and waiting ~= -2 then
  if waiter and score ~= '0' then enqueue() end
  if not (waiter and redis.pcall('ZRANK', queue, waiter) == 0) then call_next() end
  reserved = redis.pcall('GETRANGE', next, '0', '63')
  reserved_for_us = waiter and reserved == waiter
end
if left == -2 and type(reserved) == 'string' and reserved ~= '' and not reserved_for_us then
  local reservation = redis.call('PTTL', next)
  refused = reservation >= 0 and reservation <= 1000
  if refused then left = reservation end
end
if refused and waiter then
  if reserved_for_us then redis.call('PEXPIRE', next, '0') end
  if score ~= '0' then
    enqueue()
    local rank = redis.pcall('ZRANK', queue, waiter)
    if left >= 0 then left = type(rank) == 'number' and left + 4 * rank or math.min(left, 500) end
    local last = tonumber(score) > 0 and redis.pcall('ZREVRANGE', queue, '0', '0', 'WITHSCORES') or {}
    if last[2] and tonumber(last[2]) > tonumber(score) then refused = tonumber(last[2]) end
  end
end
)lua";
inline constexpr std::string_view refuse = R"lua(
if refused then
  local answer = -2 - left - (type(value) == 'table' and 4503599627370496 or 0)
  return tonumber(refused) and {answer, refused} or answer
end
)lua";
inline constexpr auto turn = joined<look_at_left, look_at_reservation, unless_at_once, look_at_owner, enqueue,
                                    call_next, stand_in_line, refuse, end_of_rivals>;

// If PEXPIRE was refused: the lock that was just set is taken back, and the script fails. It is gone at once, so
// that an attempt in another form does not meet it; a server before Redis 6.2 has no PXAT, and keeps it for a ms.
inline constexpr std::string_view take_back = R"lua(
    if redis.pcall('SET', KEYS[1], '', 'PXAT', 1).err then redis.call('SET', KEYS[1], '', 'PX', 1) end
    redis.call('PEXPIRE', KEYS[1], 1)
    return kept
)lua";

inline constexpr std::string_view set_lock = R"lua(
if left == -2 then
  redis.call('SET', KEYS[1], ARGV[1])
  local kept = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(kept) == 'table' then
)lua";
inline constexpr std::string_view leave_line = R"lua(
  end
end
if reserved_for_us then redis.pcall('PEXPIRE', next, '0') end
if waiter and not at_once then redis.pcall('ZREM', queue, waiter) end
)lua";
inline constexpr auto take = joined<set_lock, take_back, leave_line>;

inline constexpr std::string_view answer_yes = "return 1\n";
inline constexpr std::string_view answer_fence = "return foreign and {fence, 1} or fence\n";

}  // namespace parts

inline constexpr auto acquire_text = joined<parts::keys, parts::waiter, parts::turn, parts::take, parts::answer_yes>;
inline constexpr script acquire{acquire_text, "35aa69d38298618b84b5d494fb472d30a907179b"};

inline constexpr auto acquire_by_clock_text =
    joined<parts::keys_after_fence, parts::waiter_by_clock, parts::turn, parts::look_at_fence, parts::fence_by_clock,
           parts::take, parts::answer_fence>;
inline constexpr script acquire_by_clock{acquire_by_clock_text, "60cfdf650bf7b7e7e73bcd093d1e64354d3931ab"};

inline constexpr auto acquire_by_count_text =
    joined<parts::keys_after_fence, parts::waiter_by_count, parts::turn, parts::look_at_fence, parts::fence_by_count,
           parts::take, parts::answer_fence>;
inline constexpr script acquire_by_count{acquire_by_count_text, "68e81d88c753997c57a45e8fd189a57124577b16"};

// confirm: KEYS lock fence; ARGV token value fence-lifetime bound. Answers 1 or 0; 0 also if the fence or the value is
// further ahead than the bound.
namespace parts {

inline constexpr std::string_view only_owner = R"lua(
if redis.pcall('GETRANGE', KEYS[1], '0', '32') ~= ARGV[1] then return 0 end)lua";

}  // namespace parts

inline constexpr script confirm{joined<parts::only_owner, parts::raise_fence>,
                                "89ba18bd6cea2ab46c3b5af22483b404826e7d7a"};

// extend: KEYS lock; ARGV token ttl. Never shortens the time left: a late copy must not cut a longer lease.
inline constexpr std::string_view extend_text = R"lua(
if redis.pcall('GETRANGE', KEYS[1], '0', '32') ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
)lua";
inline constexpr script extend{joined<extend_text>, "91259b94c360d67f13f8eb39f5c1d137f7e8bca6"};

// reacquire: KEYS lock; ARGV token ttl. As extend, and takes a free lock.
namespace parts {

inline constexpr std::string_view take_if_free = R"lua(
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end)lua";

}  // namespace parts

inline constexpr auto reacquire_text = joined<parts::take_if_free, extend_text>;
inline constexpr script reacquire{reacquire_text, "302b5ce4ab5a23fe77f093b7973f5371c4362a87"};

namespace parts {

inline constexpr std::string_view delete_lock = "\nredis.call('PEXPIRE', KEYS[1], '0')\n";

inline constexpr std::string_view leave_or_stay = R"lua(
local ours = redis.pcall('GETRANGE', KEYS[1], '0', '32') == ARGV[1]
if next and waiter and score ~= '0' then enqueue() end
if ours then redis.call('PEXPIRE', KEYS[1], '0') end
if next and waiter then
  if score == '0' then redis.pcall('ZREM', queue, waiter) end
  if redis.pcall('GETRANGE', next, '0', '63') == waiter then redis.call('PEXPIRE', next, '0') end
end
if not ours and redis.call('PTTL', KEYS[1]) ~= -2 then return 0 end
)lua";

// For those who do not know the queue. A user without the right to publish still releases: waiters then use the clock.
inline constexpr std::string_view tell_all = R"lua(
call_next()
local told = redis.pcall('PUBLISH', ARGV[2], '')
return type(told) == 'number' and 1 + told or 1
)lua";

}  // namespace parts

// release: KEYS lock [queue next]; ARGV token channel. Answers 1 + the number of subscribers told, or 0. PEXPIRE with 0
// deletes, as DEL does; since the acquire it is known that the user may call it.
inline constexpr script release{
    joined<parts::only_owner, parts::delete_lock, parts::keys, parts::call_next, parts::tell_all>,
    "6cb2cc85202816e3deb96cc5f471e00bf95750eb"};

// release of a waiter, leave: KEYS lock queue next; ARGV token channel waiter score. As release; the waiter leaves the
// queue, or joins it if the score is not 0.
inline constexpr script give_back{
    joined<parts::keys, parts::waiter, parts::enqueue, parts::call_next, parts::leave_or_stay, parts::tell_all>,
    "6197049d2ca03b577cf42f62f32bc0192965871f"};

}  // namespace scripts
}  // namespace holdfast::redis
