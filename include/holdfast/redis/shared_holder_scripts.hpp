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
    "5eb6d85537373aa86b7692754e006b24da71326d"};

inline constexpr script acquire_exclusive_by_clock_and_tell{
    joined<parts::take_holder, parts::take_text, parts::acquire_exclusive_by_clock, parts::as_long_as_lock,
           parts::record, parts::answer_fence>,
    "fc310b49119c1ace33243300ffe55bfdbce0dddb"};

inline constexpr script acquire_exclusive_by_count_and_tell{
    joined<parts::take_holder, parts::take_text, parts::acquire_exclusive_by_count, parts::as_long_as_lock,
           parts::record, parts::answer_fence>,
    "aa976cbca9e37872aa1ce9f2d96473076eb102e0"};

inline constexpr script extend_exclusive_and_hear{joined<parts::move_beside_until, extend_and_hear_text>,
                                                  "5f7e15e154dc4b88cfeb060d79c4c1fd32ddf59a"};

inline constexpr script reacquire_exclusive_and_tell{joined<parts::move_beside_until, reacquire_and_tell_text>,
                                                     "de709022c46e1b6ad60b8948d401221e09adbb9c"};

inline constexpr script release_exclusive_and_erase{
    joined<parts::take_holder, parts::leave_exclusive, parts::erase_record, parts::tell_all>,
    "1e8c172684bd7b77a4c1acbb820c2d6b2a63e181"};

inline constexpr script acquire_shared_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::look_at_clock, parts::acquire_shared,
           parts::as_long_as_reader, parts::record, parts::answer_yes>,
    "73c8be980eb7efe344bec94f6977ad929b893dfe"};

inline constexpr script acquire_shared_by_clock_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::acquire_shared_by_clock, parts::as_long_as_reader,
           parts::record, parts::answer_fence>,
    "73e9445533f2548a51352275cc0b59685791594e"};

inline constexpr script acquire_shared_by_count_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::acquire_shared_by_count, parts::as_long_as_reader,
           parts::record, parts::answer_fence>,
    "3d5b1721053d10b3af30b17045ebc647fed54050"};

inline constexpr script extend_shared_and_hear{
    joined<parts::take_own_holder, parts::prolong_shared, parts::as_long_as_reader, parts::prolong_and_hear>,
    "aaad37b0f05ead992e99da8e1f72d68b4ef835c6"};

inline constexpr script reacquire_shared_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::look_at_clock, parts::prolong_or_join,
           parts::as_long_as_reader, parts::unless_it_reads, parts::record, parts::end_unless, parts::prolong_and_hear>,
    "1190b4a4b998bd924f3ac8f6455f893c2bc5f8c8"};

inline constexpr script release_shared_and_erase{
    joined<parts::take_own_holder, parts::erase_own, parts::leave_as_reader>,
    "216dca32eba8c9358ff023ff127006bdf9b55be8"};

}  // namespace holdfast::redis::scripts
