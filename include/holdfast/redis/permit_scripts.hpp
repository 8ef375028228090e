// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/holder_scripts.hpp>
#include <holdfast/redis/scripts.hpp>

#include <array>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// For a slot of a semaphore. The last key is the number of its permits, a string of digits, and the last argument the
// number that the client says. The rest is as without.
//
// Acquire, extend and reacquire write the number, so that it lasts at least as long as any lease of a slot, and goes
// with the last of them. One without an expiry was set by a person, and stays. If the number is another, no slot is
// taken; a lease that there is goes on. A user who may not use that key does without.

namespace parts {

inline constexpr std::string_view take_number = R"lua(
local number_key, number = table.remove(KEYS), table.remove(ARGV)
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
                                     "6e0423b04e399f787ff6e7752e1d060214fc1e02"};

inline constexpr script acquire_slot_by_clock{joined<parts::take_number, parts::refuse_number, acquire_by_clock_text>,
                                              "9afc52a05d301f3ec9e6633dd1c9dc6eef61d154"};

inline constexpr script acquire_slot_by_count{joined<parts::take_number, parts::refuse_number, acquire_by_count_text>,
                                              "fca74e3c24cacfdc73eb02020bd78e3cb93517f1"};

inline constexpr script extend_slot{joined<parts::take_number, extend_text>,
                                    "3d19969cd6d9885c661948613575eaa51a169c16"};

inline constexpr script reacquire_slot{joined<parts::take_number, parts::decline_number, reacquire_text>,
                                       "7aa87377a6838688f6df9616ccbdbe86b4ba8b67"};

// The same with a record of the holder, whose text is the last argument but one.

inline constexpr script acquire_slot_and_tell{joined<parts::take_number, parts::refuse_number, acquire_and_tell_text>,
                                              "1d1254909536ae6a62525343ae0e35080e43ebeb"};

inline constexpr script acquire_slot_by_clock_and_tell{
    joined<parts::take_number, parts::refuse_number, acquire_by_clock_and_tell_text>,
    "0e6ab9f2d2d9dd834ea9b49dada7d7059a2b91ee"};

inline constexpr script acquire_slot_by_count_and_tell{
    joined<parts::take_number, parts::refuse_number, acquire_by_count_and_tell_text>,
    "dcab741948b80ab9cbf332981dab3d232a9de122"};

inline constexpr script extend_slot_and_hear{joined<parts::take_number, extend_and_hear_text>,
                                             "2601e1e2c766df5ac84c0b83cf09d8a08c4d5f8b"};

inline constexpr script reacquire_slot_and_tell{
    joined<parts::take_number, parts::decline_number, reacquire_and_tell_text>,
    "0f2f23b2f27e667e88e03695b5d06de7fb0a2db6"};

/// Those of a slot, in the order of the fence's sources, then extend and reacquire; without a record of the holder, and
/// with one.
inline constexpr std::array<script const*, 10> of_slots{
    &acquire_slot,         &acquire_slot_by_clock,  &acquire_slot_by_count,          &extend_slot,
    &reacquire_slot,       &acquire_slot_and_tell,  &acquire_slot_by_clock_and_tell, &acquire_slot_by_count_and_tell,
    &extend_slot_and_hear, &reacquire_slot_and_tell};

}  // namespace holdfast::redis::scripts
