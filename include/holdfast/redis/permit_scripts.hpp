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
// taken; a lease that there is goes on.

namespace parts {

inline constexpr std::string_view take_number = R"lua(
local number_key, number = string.gsub(KEYS[1], '#%d+$', '#max', 1), table.remove(ARGV)
local agreed = redis.pcall('GETRANGE', number_key, 0, 7)
local knows = type(agreed) == 'string' or string.find(agreed.err, 'WRONGTYPE', 1, true)
local other = knows and agreed ~= '' and agreed ~= number
if knows and not other then
  local rest = redis.call('PTTL', number_key)
  if agreed == '' or rest ~= -1 then
    redis.call('SET', number_key, number, 'PX', string.format('%.0f', math.max(rest, tonumber(ARGV[2]))))
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
                                     "84ed35b17550e6abb86a44c2b3fc72093a780b8f"};

inline constexpr script acquire_slot_by_clock{joined<parts::take_number, parts::refuse_number, acquire_by_clock_text>,
                                              "18276246c8bb500c8075af675658494a48383267"};

inline constexpr script acquire_slot_by_count{joined<parts::take_number, parts::refuse_number, acquire_by_count_text>,
                                              "4a9cee5dcf9b754e834830168e4c2d08671a4dfd"};

inline constexpr script extend_slot{joined<parts::take_number, extend_text>,
                                    "028839f5321c391cc2b8704c27e5c24fd16e1f3b"};

inline constexpr script reacquire_slot{joined<parts::take_number, parts::decline_number, reacquire_text>,
                                       "36534a9795e0147e6c1698b83f1b65c7c76ee7e7"};

// The same with a record of the holder, whose text is the last argument but one.

inline constexpr script acquire_slot_and_tell{joined<parts::take_number, parts::refuse_number, acquire_and_tell_text>,
                                              "4bad8f9a10512bab12321445472e0c39deefd98e"};

inline constexpr script acquire_slot_by_clock_and_tell{
    joined<parts::take_number, parts::refuse_number, acquire_by_clock_and_tell_text>,
    "3588851fcce4dec39decfd624c8c34d43405d642"};

inline constexpr script acquire_slot_by_count_and_tell{
    joined<parts::take_number, parts::refuse_number, acquire_by_count_and_tell_text>,
    "ade9b52d9a8ccc85e6655e84ac2179a51ce59556"};

inline constexpr script extend_slot_and_hear{joined<parts::take_number, extend_and_hear_text>,
                                             "1ddf78de1300c28efeca88ef43caebb7ec8b544e"};

inline constexpr script reacquire_slot_and_tell{
    joined<parts::take_number, parts::decline_number, reacquire_and_tell_text>,
    "dcd7c3142db8b6e0c0b79988d0b253e7f71ee19e"};

/// Those of a slot, in the order of the fence's sources, then extend and reacquire; without a record of the holder, and
/// with one.
inline constexpr std::array<script const*, 10> of_slots{
    &acquire_slot,         &acquire_slot_by_clock,  &acquire_slot_by_count,          &extend_slot,
    &reacquire_slot,       &acquire_slot_and_tell,  &acquire_slot_by_clock_and_tell, &acquire_slot_by_count_and_tell,
    &extend_slot_and_hear, &reacquire_slot_and_tell};

}  // namespace holdfast::redis::scripts
