// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/holder_scripts.hpp>
#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/shared_scripts.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// The scripts of a shared_mutex with a record of the holder, as `holder_scripts` says. That of a writer is like that of
// a mutex; its renewals are those of a mutex, too. Each reader has a record of its own, which lasts as long as its
// lease. Its key is the last of KEYS, a colon, and a digest of the owner token: those who may list the names of keys
// learn no token.

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
    "de3cfe85d04db2bf8e04fa960b8cb00a308ee3df"};

inline constexpr script acquire_exclusive_by_clock_and_tell{
    joined<parts::take_holder, parts::take_text, parts::acquire_exclusive_by_clock, parts::as_long_as_lock,
           parts::record, parts::answer_fence>,
    "b4e9592c9d8dbc619b2bc8d405de6306dbe7f300"};

inline constexpr script acquire_exclusive_by_count_and_tell{
    joined<parts::take_holder, parts::take_text, parts::acquire_exclusive_by_count, parts::as_long_as_lock,
           parts::record, parts::answer_fence>,
    "b58bbe64e1b26f0039e086b9fad3c718bf5eafe1"};

inline constexpr script release_exclusive_and_erase{
    joined<parts::take_holder, parts::leave_exclusive, parts::erase_record, parts::tell_all>,
    "b88d3ce59473808524d7fe3c141d4dd587a5ac42"};

inline constexpr script acquire_shared_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::look_at_clock, parts::acquire_shared,
           parts::as_long_as_reader, parts::record, parts::answer_yes>,
    "a1b7a4ba05c8a4fbef3c4f97e558c634502a0f58"};

inline constexpr script acquire_shared_by_clock_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::acquire_shared_by_clock, parts::as_long_as_reader,
           parts::record, parts::answer_fence>,
    "bbfc4d954b1943f9959057160e7dd8b124d7077d"};

inline constexpr script acquire_shared_by_count_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::acquire_shared_by_count, parts::as_long_as_reader,
           parts::record, parts::answer_fence>,
    "43732028ada4f0568a4f4ee29c97c4b3e50384b0"};

inline constexpr script extend_shared_and_hear{
    joined<parts::take_own_holder, parts::prolong_shared, parts::as_long_as_reader, parts::prolong_and_hear>,
    "b1d6316693312e1b9354b7d340a74a0bef92e041"};

inline constexpr script reacquire_shared_and_tell{
    joined<parts::take_own_holder, parts::take_text, parts::look_at_clock, parts::prolong_or_join,
           parts::as_long_as_reader, parts::unless_it_reads, parts::record, parts::end_unless, parts::prolong_and_hear>,
    "728bb6fc8bb1d949bc2e1752c313c7b329b5959d"};

inline constexpr script release_shared_and_erase{
    joined<parts::take_own_holder, parts::erase_own, parts::leave_as_reader>,
    "bb8f4cf030200da7a0bb7a94eaca6f1547fe98f3"};

}  // namespace holdfast::redis::scripts
