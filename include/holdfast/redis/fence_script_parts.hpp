// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/script.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts::parts {

// What the scripts of an acquire and of a confirm do with the counter of fencing tokens, which is KEYS[2].
//
// A fence is read as text. It counts as a number only if it has so few digits that a double holds it. It is foreign if
// it is no number, or further ahead of the clock than the bound; {fence, 1} is answered if it was replaced. By count,
// with a guard, it is replaced by a note: '-' and the most that it can have been, also if the clock was set back by
// half a guard meanwhile. Then {0, 1} is answered, and {0, 0} until the clock has come near the note. A note that is
// older than the lifetime of a fence is foreign, too.

inline constexpr std::string_view look_at_fence = R"lua(
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
local kept = redis.pcall('GETRANGE', KEYS[2], '0', '32')
if kept == '' then
  kept = redis.call('PTTL', KEYS[2]) ~= -2
end
)lua";

inline constexpr std::string_view next_by_clock = R"lua(
local last = type(kept) == 'string' and #kept <= 16 and string.find(kept, '^%d+$') and tonumber(kept)
local foreign = kept and not (last and last <= clock + ARGV[5] + 1000000)
if foreign then last = clock + ARGV[5] end
local fence = math.max((last or 0) + 1, clock) + ARGV[3] - 1
)lua";

inline constexpr std::string_view keep_fence = R"lua(local lead = (fence - clock) / 1000
local lifetime = lead < 1 and ARGV[4] or string.format('%.0f', ARGV[4] + lead)
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', lifetime)
)lua";
inline constexpr auto fence_by_clock = joined<next_by_clock, keep_fence>;

inline constexpr std::string_view fence_by_count = R"lua(
local number = type(kept) == 'string' and #kept <= 17 and string.find(kept, '^-?%d+$') and tonumber(kept)
local last = number and math.abs(number) or 0
local lead = tonumber(ARGV[7])
local most = clock + ARGV[5] + lead
local foreign = kept and not (number and last <= (number < 0 and most or clock + ARGV[5]))
if number and number < 0 and last < clock - ARGV[4] * 1000 then foreign = true end
if foreign and lead > 0 then
  redis.call('SET', KEYS[2], string.format('-%.0f', most), 'PX', ARGV[4])
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

inline constexpr std::string_view raise_fence = R"lua(
local time = redis.call('TIME')
local kept = redis.pcall('GETRANGE', KEYS[2], '0', '32')
if kept == '' then
  kept = redis.call('PTTL', KEYS[2]) == -2 and '0'
end
local last = type(kept) == 'string' and #kept <= 16 and string.find(kept, '^%d+$') and tonumber(kept)
if not last or math.max(last, ARGV[2]) > time[1] * 1000000 + time[2] + ARGV[4] then return 0 end
if last < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
end
return 1
)lua";

}  // namespace holdfast::redis::scripts::parts
