// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/holder_scripts.hpp>
#include <holdfast/redis/scripts.hpp>

#include <array>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// For a slot of a semaphore. The last argument is the number of its permits, as the client says it; the rest is as
// without. The number in use is kept in a key beside those of the slots, `name#max`, a string of digits. That key is not
// among KEYS: a user who may not use it would be refused as a whole, and so does without.
//
// Acquire, extend and reacquire write the number, so that it lasts at least as long as any lease of a slot, and goes
// with the last of them. One without an expiry was set by a person, and stays. If the number is another, no slot is
// taken; a lease that there is goes on. A server without memory may refuse to write it: no lease is lost for that.

namespace parts {

inline constexpr std::string_view take_number = R"lua(
local number_key, number = string.gsub(KEYS[1], '#%d+$', '#max', 1), table.remove(ARGV)
local agreed = redis.pcall('GETRANGE', number_key, 0, 7)
local knows = type(agreed) == 'string' or string.find(agreed.err, 'WRONGTYPE', 1, true)
local other = knows and agreed ~= '' and agreed ~= number
if knows and not other then
  local rest = redis.call('PTTL', number_key)
  if agreed == '' then
    redis.pcall('SET', number_key, number, 'PX', string.format('%.0f', math.max(rest, tonumber(ARGV[2]))))
  elseif rest ~= -1 and rest < tonumber(ARGV[2]) then
    redis.pcall('PEXPIRE', number_key, ARGV[2])
  end
end
)lua";

inline constexpr std::string_view refuse_number = R"lua(
if other then
  local said = type(agreed) == 'string' and string.find(agreed, '^%d+$') and agreed or 'something else'
  return {err = 'OTHERNUMBER its number of permits is ' .. said .. ', and this client says ' .. number}
end
)lua";

inline constexpr std::string_view decline_number = "if other then return 0 end\n";

}  // namespace parts

inline constexpr script acquire_slot{joined<parts::take_number, parts::refuse_number, acquire_text>,
                                     "01a7051eef8345c96790c69f1361dd8e7ebb8e69"};

inline constexpr script acquire_slot_by_clock{joined<parts::take_number, parts::refuse_number, acquire_by_clock_text>,
                                              "53abafc032c49b22267b543e6790d472adb05d36"};

inline constexpr script acquire_slot_by_count{joined<parts::take_number, parts::refuse_number, acquire_by_count_text>,
                                              "004aa6fc08992f04f55ba8bddb4033a45032e677"};

inline constexpr script extend_slot{joined<parts::take_number, extend_text>,
                                    "0d496651835b2c6a829a94858135605fa50a6b68"};

inline constexpr script reacquire_slot{joined<parts::take_number, parts::decline_number, reacquire_text>,
                                       "80847cd3cc2111db62ad0eaeb9899ca93d8653e2"};

// The same with a record of the holder, whose text is the last argument but one.

inline constexpr script acquire_slot_and_tell{joined<parts::take_number, parts::refuse_number, acquire_and_tell_text>,
                                              "14ebb226c43afafb03988bfaa6b848003cdb0a9d"};

inline constexpr script acquire_slot_by_clock_and_tell{
    joined<parts::take_number, parts::refuse_number, acquire_by_clock_and_tell_text>,
    "2507d478dbb570b87cc8ef0cdc6452954d24c2ea"};

inline constexpr script acquire_slot_by_count_and_tell{
    joined<parts::take_number, parts::refuse_number, acquire_by_count_and_tell_text>,
    "eaad8fc6d21841ea074ae3bc08f6fb559e782f66"};

inline constexpr script extend_slot_and_hear{joined<parts::take_number, extend_and_hear_text>,
                                             "03d5cb71a09898b97ae80d5806b2f79403b21483"};

inline constexpr script reacquire_slot_and_tell{
    joined<parts::take_number, parts::decline_number, reacquire_and_tell_text>,
    "6f0140b20beb0ed4d73c090f7aecbc5e0f296dee"};

/// Those of a slot, in the order of the fence's sources, then extend and reacquire; without a record of the holder, and
/// with one.
inline constexpr std::array<script const*, 10> of_slots{
    &acquire_slot,         &acquire_slot_by_clock,  &acquire_slot_by_count,          &extend_slot,
    &reacquire_slot,       &acquire_slot_and_tell,  &acquire_slot_by_clock_and_tell, &acquire_slot_by_count_and_tell,
    &extend_slot_and_hear, &reacquire_slot_and_tell};

}  // namespace holdfast::redis::scripts
