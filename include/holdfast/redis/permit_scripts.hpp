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
// A server without memory may refuse to write it: no lease is lost for that.

namespace parts {

inline constexpr std::string_view take_number = R"lua(
local number_key, number = string.gsub(KEYS[1], '#%d+$', '#max', 1), table.remove(ARGV)
local agreed = redis.pcall('GETRANGE', number_key, 0, 7)
local knows = type(agreed) == 'string' or string.find(agreed.err, 'WRONGTYPE', 1, true)
local other = knows and agreed ~= '' and agreed ~= number
if knows and not other then
  local rest, lasts = redis.call('PTTL', number_key), tonumber(ARGV[2]) + 1000
  if agreed == '' then
    redis.pcall('SET', number_key, number, 'PX', string.format('%.0f', math.max(rest, lasts)))
  elseif rest ~= -1 and rest < lasts then
    redis.pcall('PEXPIRE', number_key, string.format('%.0f', lasts))
  end
end
)lua";

inline constexpr std::string_view refuse_number = R"lua(
if other then
  local said = type(agreed) == 'string' and string.find(agreed, '^%d+$') and agreed or 'something else'
  return {err = 'OTHERNUMBER its number of permits is ' .. said .. ', and this client says ' .. number}
end
)lua";

inline constexpr std::string_view keep_number = R"lua(
local held = other and redis.pcall('GETRANGE', KEYS[1], '0', '32') == ARGV[1]
if held then
  local rest, lasts = redis.call('PTTL', number_key), tonumber(ARGV[2]) + 1000
  if rest >= 0 and rest < lasts then redis.pcall('PEXPIRE', number_key, string.format('%.0f', lasts)) end
end
)lua";

inline constexpr std::string_view decline_number = "if other and not held then return 0 end\n";

}  // namespace parts

inline constexpr script acquire_slot{joined<parts::take_number, parts::refuse_number, acquire_text>,
                                     "f70a8b25a249bd6258400515b934e5b318c0f074"};

inline constexpr script acquire_slot_by_clock{joined<parts::take_number, parts::refuse_number, acquire_by_clock_text>,
                                              "38fb156b88d7f0b341d09dac4b42febd88e0925e"};

inline constexpr script acquire_slot_by_count{joined<parts::take_number, parts::refuse_number, acquire_by_count_text>,
                                              "8bafd6b1f1cf0487b557cfd67393bb1d2ac11591"};

inline constexpr script extend_slot{joined<parts::take_number, parts::keep_number, extend_text>,
                                    "ae873a471378112cd120e1c5df3a1a9f6dbb24ec"};

inline constexpr script reacquire_slot{
    joined<parts::take_number, parts::keep_number, parts::decline_number, reacquire_text>,
    "df2f55b4e6b85814f5d417ac7283af17f7409960"};

// The same with a record of the holder, whose text is the last argument but one.

inline constexpr script acquire_slot_and_tell{joined<parts::take_number, parts::refuse_number, acquire_and_tell_text>,
                                              "60f0c6f0d050d1e54f0e70a006cc3fc8ed88f319"};

inline constexpr script acquire_slot_by_clock_and_tell{
    joined<parts::take_number, parts::refuse_number, acquire_by_clock_and_tell_text>,
    "d9eb98a0e1cacbf9bbda48d974c10df4cf8d6acd"};

inline constexpr script acquire_slot_by_count_and_tell{
    joined<parts::take_number, parts::refuse_number, acquire_by_count_and_tell_text>,
    "ed59c6269b34ba4d9645ca976c2f45a7a6803d28"};

inline constexpr script extend_slot_and_hear{joined<parts::take_number, parts::keep_number, extend_and_hear_text>,
                                             "5e6f8a882d0540f9136b6b4b451ab0e9355a25c1"};

inline constexpr script reacquire_slot_and_tell{
    joined<parts::take_number, parts::keep_number, parts::decline_number, reacquire_and_tell_text>,
    "836df0055b32ba48420c588dd5d994f55970e2d2"};

}  // namespace holdfast::redis::scripts
