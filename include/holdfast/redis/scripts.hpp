// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// A script that runs on the server, and the SHA-1 by which it is called. Scripts are constants: all input goes in KEYS
/// and ARGV.
struct script {
    std::string_view text;
    std::string_view sha1;
};

/// The text of a script that has several parts.
template <std::string_view const&... Parts>
inline constexpr auto text_of = [] {
    std::array<char, (Parts.size() + ...)> all{};
    auto at = all.begin();
    ((at = std::copy(Parts.begin(), Parts.end(), at)), ...);
    return all;
}();

template <std::string_view const&... Parts>
inline constexpr std::string_view joined{text_of<Parts...>.data(), text_of<Parts...>.size()};

namespace scripts {

// acquire: KEYS lock [fence]; ARGV token ttl [batch fence-lifetime bound [proposal max-lead floor]]. If the lock is the
// token's now, or was already, it answers the fence, or 1 without one. If another token has it, it answers -2 - PTTL,
// which is not positive.
// - GETRANGE is a pcall: a key of another type counts as held, and the answer is less by `other_type_mark`. It reads
//   one byte more than a token has, since the value may be long.
// - PTTL is -2 if there is no key: this tells an empty value from none.
// - A renewal and a release need PTTL and PEXPIRE. A user without the right to one of them gets an error, and no lock.
// - The first write is a SET: a server without memory lets a script go on that has written.
// - The fence is written before the lock: if that fails, nothing is taken.
// - Each call that may be refused has its own line: servers name the line.
//
// A fence is read as text. It counts as a number only if it has so few digits that a double holds it. It is foreign if
// it is no number, or further ahead of the clock than the bound; {fence, 1} is answered if it was replaced. By count,
// with a guard, it is replaced by a note: '-' and the most that it can have been. Then {0, 1} is answered, and {0, 0}
// until the clock has come near the note. A note that is older than the lifetime of a fence is foreign, too.

namespace parts {

inline constexpr std::string_view look = R"lua(
local value = redis.pcall('GETRANGE', KEYS[1], 0, 32)
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
  redis.call('GETRANGE', KEYS[1], 0, 32)
end
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 and value ~= ARGV[1] then return -2 - left - (type(value) == 'table' and 4503599627370496 or 0) end
)lua";

inline constexpr std::string_view look_at_fence = R"lua(
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
local kept = redis.pcall('GETRANGE', KEYS[2], 0, 32)
if kept == '' then
  kept = redis.call('PTTL', KEYS[2]) ~= -2
end
)lua";

inline constexpr std::string_view fence_by_clock = R"lua(
local last = type(kept) == 'string' and #kept <= 16 and string.find(kept, '^%d+$') and tonumber(kept)
local foreign = kept and not (last and last <= clock + ARGV[5])
if foreign then last = clock + ARGV[5] end
local fence = math.max((last or 0) + 1, clock) + ARGV[3] - 1
local lifetime = ARGV[4] + math.max(0, fence - clock) / 1000
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', string.format('%.0f', lifetime))
)lua";

inline constexpr std::string_view fence_by_count = R"lua(
local number = type(kept) == 'string' and #kept <= 17 and string.find(kept, '^-?%d+$') and tonumber(kept)
local last = number and math.abs(number) or 0
local lead = tonumber(ARGV[7])
local foreign = kept and not (number and last <= clock + ARGV[5])
if number and number < 0 and last < clock - ARGV[4] * 1000 then foreign = true end
if foreign and lead > 0 then
  redis.call('SET', KEYS[2], string.format('-%.0f', clock + ARGV[5]), 'PX', ARGV[4])
  return {0, 1}
end
if foreign then last = 0 end
if lead > 0 and number and number < 0 and last > clock + lead then return {0, 0} end
if last < tonumber(ARGV[8]) then
  local proposal = tonumber(ARGV[6])
  if proposal > clock + lead then proposal = 0 end
  last = math.max(clock, proposal, ARGV[8])
end
local fence = last + ARGV[3]
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ARGV[4])
)lua";

inline constexpr std::string_view take = R"lua(
if left == -2 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  if type(redis.pcall('PEXPIRE', KEYS[1], ARGV[2])) == 'table' then
    redis.call('SET', KEYS[1], '', 'PX', 1)
    redis.call('PEXPIRE', KEYS[1], 1)
  end
end
)lua";

inline constexpr std::string_view answer_yes = "return 1\n";
inline constexpr std::string_view answer_fence = "return foreign and {fence, 1} or fence\n";

}  // namespace parts

inline constexpr script acquire{joined<parts::look, parts::take, parts::answer_yes>,
                                "9d5e3ab493c75aab2200b83763f607c8f2445e9a"};

inline constexpr script acquire_by_clock{
    joined<parts::look, parts::look_at_fence, parts::fence_by_clock, parts::take, parts::answer_fence>,
    "71485da79418d39df131ef490d003179ad6eaa68"};

inline constexpr script acquire_by_count{
    joined<parts::look, parts::look_at_fence, parts::fence_by_count, parts::take, parts::answer_fence>,
    "f6728bd0270a3110cb9464a9ed2d947900b8590b"};

// confirm: KEYS lock fence; ARGV token value fence-lifetime bound. Answers 1 or 0; 0 also if the fence or the value is
// further ahead than the bound.
inline constexpr script confirm{R"lua(
if redis.pcall('GETRANGE', KEYS[1], 0, 32) ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local kept = redis.pcall('GETRANGE', KEYS[2], 0, 32)
if kept == '' then
  kept = redis.call('PTTL', KEYS[2]) == -2 and '0'
end
local last = type(kept) == 'string' and #kept <= 16 and string.find(kept, '^%d+$') and tonumber(kept)
if not last or math.max(last, ARGV[2]) > time[1] * 1000000 + time[2] + ARGV[4] then return 0 end
if last < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
end
return 1
)lua",
                                "040831254830459a02ef3c46707833e5f777fcc5"};

// extend: KEYS lock; ARGV token ttl. Never shortens the time left: a late copy must not cut a longer lease.
inline constexpr script extend{R"lua(
if redis.pcall('GETRANGE', KEYS[1], 0, 32) ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
)lua",
                               "b507a4092ba965149e0fd8b7c453f3551dd019f1"};

// reacquire: KEYS lock; ARGV token ttl. As extend, and takes a free lock.
inline constexpr script reacquire{R"lua(
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.pcall('GETRANGE', KEYS[1], 0, 32) ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
)lua",
                                  "5addbad67398e1a9cc9669f84a2131cc90097f21"};

// release: KEYS lock; ARGV token channel. Answers 1 + the number of subscribers told, or 0. PEXPIRE with 0 deletes, as
// DEL does; since the acquire it is known that the user may call it. A user without the right to publish still
// releases: waiters then use the clock.
inline constexpr script release{R"lua(
if redis.pcall('GETRANGE', KEYS[1], 0, 32) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], 0)
local told = redis.pcall('PUBLISH', ARGV[2], '')
return type(told) == 'number' and 1 + told or 1
)lua",
                                "b0466e79820253d39e4bdfb3560d13052ba00cd4"};

/// Those of an acquire in the order of `fence_source`, then those of the other verbs in theirs.
inline constexpr std::array<script const*, 7> all{&acquire, &acquire_by_clock, &acquire_by_count, &confirm,
                                                  &extend,  &reacquire,        &release};

}  // namespace scripts

}  // namespace holdfast::redis
