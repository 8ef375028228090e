// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/holder_scripts.hpp>
#include <holdfast/redis/scripts.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// For a slot of a semaphore. The last argument is the number of its permits, as the client says it; the rest is as
// without. The number in use is kept in a key beside those of the slots, `name#max`, a string of digits. That key is
// not among KEYS: a user who may not use it would be refused as a whole, and so does without.
//
// Acquire, extend and reacquire write the number, so that it lasts a second longer than any lease of a slot: the clock
// of the server goes on while a script runs. One without an expiry was set by a person, and stays. If the number is
// another, no slot is taken; a lease that there is goes on, and that number lasts as long: it was changed by `resize`.
// A server without memory refuses to write it: no slot is taken then, and no lease lost.

namespace parts {

inline constexpr std::string_view take_number = R"lua(
local number_key, number = string.gsub(KEYS[1], '#%d+$', '#max', 1), table.remove(ARGV)
local agreed = redis.pcall('GETRANGE', number_key, 0, 7)
local knows = type(agreed) == 'string' or string.find(agreed.err, 'WRONGTYPE', 1, true)
local other = knows and agreed ~= '' and agreed ~= number
local rest, lasts = knows and redis.call('PTTL', number_key) or -1, tonumber(ARGV[2]) + 1000
local short = knows and (agreed == '' or rest ~= -1 and rest < lasts)
lasts = string.format('%.0f', math.max(rest, lasts))
)lua";

inline constexpr std::string_view refuse_number = R"lua(
if other then
  local said = type(agreed) == 'string' and string.find(agreed, '^%d+$') and agreed or 'something else'
  return {err = 'OTHERNUMBER its number of permits is ' .. said .. ', and this client says ' .. number}
end
local kept = short and redis.pcall('SET', number_key, number, 'PX', lasts)
if kept and kept.err and string.find(kept.err, 'OOM', 1, true) then return kept end
)lua";

inline constexpr std::string_view keep_number = R"lua(
local held = other and redis.pcall('GETRANGE', KEYS[1], '0', '32') == ARGV[1]
if short and agreed == '' then
  redis.pcall('SET', number_key, number, 'PX', lasts)
elseif short and (held or not other) then
  redis.pcall('PEXPIRE', number_key, lasts)
end
)lua";

inline constexpr std::string_view decline_number = "if other and not held then return 0 end\n";

}  // namespace parts

inline constexpr script acquire_slot{joined<parts::take_number, parts::refuse_number, acquire_text>,
                                     "23df177a2c6c89e83e57cfc0525c36eb0d685b4f"};

inline constexpr script acquire_slot_by_clock{joined<parts::take_number, parts::refuse_number, acquire_by_clock_text>,
                                              "6e7745004c6a758ca6a747a78957d26f9d38e79f"};

inline constexpr script acquire_slot_by_count{joined<parts::take_number, parts::refuse_number, acquire_by_count_text>,
                                              "c520e2f75338d9548b9b5e662343701dbddcadc3"};

inline constexpr script extend_slot{joined<parts::take_number, parts::keep_number, extend_text>,
                                    "e1cba2db6bc30114ac6492862655ca3853ed77d1"};

inline constexpr script reacquire_slot{
    joined<parts::take_number, parts::keep_number, parts::decline_number, reacquire_text>,
    "e6a4c0710bc9ad2db272ffdbadc318619cee8b91"};

// The same with a record of the holder, whose text is the last argument but one.

inline constexpr script acquire_slot_and_tell{joined<parts::take_number, parts::refuse_number, acquire_and_tell_text>,
                                              "2c4bc95e991d42aee441b0983c4fc56ea0357fce"};

inline constexpr script acquire_slot_by_clock_and_tell{
    joined<parts::take_number, parts::refuse_number, acquire_by_clock_and_tell_text>,
    "99853ca629ae8adb0e252faa6906a7db0093af1c"};

inline constexpr script acquire_slot_by_count_and_tell{
    joined<parts::take_number, parts::refuse_number, acquire_by_count_and_tell_text>,
    "500e2f982c52ab3905a57f33fa6dbdfb86712ac1"};

inline constexpr script extend_slot_and_hear{joined<parts::take_number, parts::keep_number, extend_and_hear_text>,
                                             "b549818c71579b23471d3404626ee0fcff97e011"};

inline constexpr script reacquire_slot_and_tell{
    joined<parts::take_number, parts::keep_number, parts::decline_number, reacquire_and_tell_text>,
    "5ba3911d5cb4eacac64d952748b22471e4a0b009"};

}  // namespace holdfast::redis::scripts
