// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/holder_scripts.hpp>
#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/shared_script_parts.hpp>
#include <holdfast/redis/shared_scripts.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// The scripts of a shared_mutex with a record of the holder, as `holder_scripts` says. That of a writer is like that of
// a mutex; its renewals are those of a mutex, too.

namespace parts {

// A writer that was a reader keeps what is left of that lease, if it is longer.
inline constexpr std::string_view as_long_as_lock = "ARGV[2] = redis.call('PTTL', KEYS[1])\n";

}  // namespace parts

inline constexpr script acquire_exclusive_and_tell{
    joined<parts::take_holder, parts::take_text, parts::look_at_clock, parts::acquire_exclusive, parts::as_long_as_lock,
           parts::record, parts::answer_yes>,
    "9a21b8f764f4c29ddc3d1453615f78d0ba2f2d64"};

inline constexpr script acquire_exclusive_by_clock_and_tell{
    joined<parts::take_holder, parts::take_text, parts::acquire_exclusive_by_clock, parts::as_long_as_lock,
           parts::record, parts::answer_fence>,
    "424a9d0dc3430abafae261d8f42dda7724053de2"};

inline constexpr script acquire_exclusive_by_count_and_tell{
    joined<parts::take_holder, parts::take_text, parts::acquire_exclusive_by_count, parts::as_long_as_lock,
           parts::record, parts::answer_fence>,
    "ad886aa1de11cffe45bf7cb536887950551811eb"};

inline constexpr script release_exclusive_and_erase{
    joined<parts::take_holder, parts::leave_exclusive, parts::erase_record, parts::tell_all>,
    "43c0dece95c7e7efbb1ba74f1d52f921828f0e63"};

}  // namespace holdfast::redis::scripts
