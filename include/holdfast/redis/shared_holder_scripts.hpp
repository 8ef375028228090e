// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/holder_scripts.hpp>
#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/shared_scripts.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// The scripts of a shared_mutex with a record of the holder, as `holder_scripts` says. That of a writer is like that of
// a mutex. Each reader has a record of its own, which lasts as long as its lease. Its key is the last of KEYS, a colon,
// and a digest of the owner token: those who may list the names of keys learn no token.

namespace parts {

// A writer that was a reader keeps what is left of that lease, if it is longer.
inline constexpr std::string_view as_long_as_lock = "ARGV[2] = redis.call('PTTL', KEYS[1])\n";

inline constexpr std::string_view take_own_holder =
    "local holder = table.remove(KEYS) .. ':' .. redis.sha1hex(ARGV[1])\n";

inline constexpr std::string_view as_long_as_reader = "ARGV[2] = ms(math.max(ARGV[2], (ends_at or now) - now))\n";

inline constexpr std::string_view unless_it_reads = "if not ours then\n";
inline constexpr std::string_view end_unless = "end\n";

inline constexpr std::string_view prolong_and_hear = R"lua(
redis.pcall('PEXPIRE', holder, ARGV[2])
return redis.pcall('GETRANGE', holder, 32, 32) == '!' and 2 or 1
)lua";

inline constexpr std::string_view erase_own = "redis.pcall('PEXPIRE', holder, 0)\n";

}  // namespace parts

inline constexpr script acquire_exclusive_and_tell{
    joined<parts::take_holder, parts::take_text, parts::look_at_clock, parts::acquire_exclusive, parts::as_long_as_lock,
           parts::record, parts::answer_yes>,
    "026ed75fbe526174738a2a11b017791f3a15b57c"};

inline constexpr script acquire_exclusive_by_clock_and_tell{
    joined<parts::take_holder, parts::take_text, parts::acquire_exclusive_by_clock, parts::as_long_as_lock,
           parts::record, parts::answer_fence>,
    "c0efd12384531aac31f23664cd3dde298588ed6a"};

inline constexpr script acquire_exclusive_by_count_and_tell{
    joined<parts::take_holder, parts::take_text, parts::acquire_exclusive_by_count, parts::as_long_as_lock,
           parts::record, parts::answer_fence>,
    "c3889adafb0a9109c41542627a170eb12b90ec02"};

inline constexpr script extend_exclusive_and_hear{joined<parts::move_beside_until, extend_and_hear_text>,
                                                  "5f7e15e154dc4b88cfeb060d79c4c1fd32ddf59a"};

inline constexpr script reacquire_exclusive_and_tell{joined<parts::move_beside_until, reacquire_and_tell_text>,
                                                     "de709022c46e1b6ad60b8948d401221e09adbb9c"};

inline constexpr script release_exclusive_and_erase{
    joined<parts::take_holder, parts::leave_exclusive, parts::erase_record, parts::tell_all>,
    "fe48d3962d6f4ea8cfc3f3e794e0085e352b99a9"};

inline constexpr script acquire_shared_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::look_at_clock, parts::acquire_shared,
           parts::as_long_as_reader, parts::record, parts::answer_yes>,
    "3ad777d914fbd16183247cbb2db99034a4186390"};

inline constexpr script acquire_shared_by_clock_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::acquire_shared_by_clock, parts::as_long_as_reader,
           parts::record, parts::answer_fence>,
    "b3437c063ff6a49af58f7e9eea635b97f136236e"};

inline constexpr script acquire_shared_by_count_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::acquire_shared_by_count, parts::as_long_as_reader,
           parts::record, parts::answer_fence>,
    "95c43e58e32883f6666e189d30976587c398f2d8"};

inline constexpr script extend_shared_and_hear{
    joined<parts::take_own_holder, parts::prolong_shared, parts::as_long_as_reader, parts::prolong_and_hear>,
    "f7e37b4d6c25944b80f079893a69d6beafe8d562"};

inline constexpr script reacquire_shared_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::look_at_clock, parts::prolong_or_join,
           parts::as_long_as_reader, parts::unless_it_reads, parts::record, parts::end_unless, parts::prolong_and_hear>,
    "afabdf7b2d913c4e39c5bd344d5a026866bb0921"};

inline constexpr script release_shared_and_erase{
    joined<parts::take_own_holder, parts::erase_own, parts::leave_as_reader>,
    "31ef36fd75509970dc100f28eaeafc83f7041b77"};

}  // namespace holdfast::redis::scripts
