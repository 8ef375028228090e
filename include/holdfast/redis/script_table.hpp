// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/holder_scripts.hpp>
#include <holdfast/redis/joint_script.hpp>
#include <holdfast/redis/many_scripts.hpp>
#include <holdfast/redis/permit_scripts.hpp>
#include <holdfast/redis/redisson_scripts.hpp>
#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/shared_holder_scripts.hpp>
#include <holdfast/redis/shared_scripts.hpp>

#include <array>
#include <cstddef>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// The scripts of a kind of lock: those of an acquire in the order of `fence_source`, then those of the next verbs, up
/// to `leave`.
using recipe = std::array<script const*, 8>;

namespace scripts {

inline constexpr recipe of_mutex{&acquire, &acquire_by_clock, &acquire_by_count, &confirm,
                                 &extend,  &reacquire,        &release,          &give_back};

inline constexpr recipe of_mutex_with_holder{&acquire_and_tell,  &acquire_by_clock_and_tell, &acquire_by_count_and_tell,
                                             &confirm,           &extend_and_hear,           &reacquire_and_tell,
                                             &release_and_erase, &give_back_and_erase};

inline constexpr recipe of_slot{
    &acquire_slot, &acquire_slot_by_clock, &acquire_slot_by_count, &confirm, &extend_slot, &reacquire_slot, &release,
    &give_back};

inline constexpr recipe of_slot_with_holder{&acquire_slot_and_tell,
                                            &acquire_slot_by_clock_and_tell,
                                            &acquire_slot_by_count_and_tell,
                                            &confirm,
                                            &extend_slot_and_hear,
                                            &reacquire_slot_and_tell,
                                            &release_and_erase,
                                            &give_back_and_erase};

inline constexpr recipe of_writer{&acquire_exclusive, &acquire_exclusive_by_clock, &acquire_exclusive_by_count,
                                  &confirm,           &extend_exclusive,           &reacquire_exclusive,
                                  &release_exclusive, &release_exclusive};

inline constexpr recipe of_writer_with_holder{
    &acquire_exclusive_and_tell,          &acquire_exclusive_by_clock_and_tell,
    &acquire_exclusive_by_count_and_tell, &confirm,
    &extend_exclusive_and_hear,           &reacquire_exclusive_and_tell,
    &release_exclusive_and_erase,         &release_exclusive_and_erase};

inline constexpr recipe of_reader{&acquire_shared, &acquire_shared_by_clock, &acquire_shared_by_count, &confirm_shared,
                                  &extend_shared,  &reacquire_shared,        &release_shared,          &release_shared};

inline constexpr recipe of_reader_with_holder{&acquire_shared_and_tell,          &acquire_shared_by_clock_and_tell,
                                              &acquire_shared_by_count_and_tell, &confirm_shared,
                                              &extend_shared_and_hear,           &reacquire_shared_and_tell,
                                              &release_shared_and_erase,         &release_shared_and_erase};

/// What operators ask, in the order of the verbs.
inline constexpr std::array<script const*, 6> of_operators{&inspect, &force_release, &request_release,
                                                           &list,    &count,         &resize};

namespace redisson {

// On a single server, as this layout's are, none counts fences or confirms one, and a renewal that would reacquire is
// one that extends.
inline constexpr recipe of_mutex{&acquire, &acquire_by_clock, &acquire_by_clock, &extend,
                                 &extend,  &extend,           &release,          &release};

inline constexpr recipe of_writer{&acquire_exclusive, &acquire_exclusive_by_clock, &acquire_exclusive_by_clock,
                                  &extend_exclusive,  &extend_exclusive,           &extend_exclusive,
                                  &release_exclusive, &release_exclusive};

inline constexpr recipe of_reader{&acquire_shared, &acquire_shared_by_clock, &acquire_shared_by_clock, &extend_shared,
                                  &extend_shared,  &extend_shared,           &release_shared,          &release_shared};

/// Those that cannot be asked in this layout are as in the other.
inline constexpr std::array<script const*, 6> of_operators{&inspect,       &force_release,  &scripts::request_release,
                                                           &scripts::list, &scripts::count, &scripts::resize};

}  // namespace redisson

/// Every script is in one of these, among the operators', among `renewals`, or `acquire_all`.
inline constexpr std::array<recipe const*, 11> recipes{&of_mutex,
                                                       &of_mutex_with_holder,
                                                       &of_slot,
                                                       &of_slot_with_holder,
                                                       &of_writer,
                                                       &of_writer_with_holder,
                                                       &of_reader,
                                                       &of_reader_with_holder,
                                                       &redisson::of_mutex,
                                                       &redisson::of_writer,
                                                       &redisson::of_reader};

}  // namespace scripts

/// No fewer than there are.
inline constexpr std::size_t most_scripts = scripts::of_mutex.size() * scripts::recipes.size() +
                                            2 * scripts::of_operators.size() + scripts::renewals.size() + 1;

/// Returns: the recipe of the lock that `c` is about.
[[nodiscard]] inline recipe const& recipe_of(command const& c) noexcept
{
    auto const mode = mode_of(c);
    bool const redisson = in_redisson(c);
    if (redisson && mode == access::shared) return scripts::redisson::of_reader;
    if (redisson) return mode == access::exclusive ? scripts::redisson::of_writer : scripts::redisson::of_mutex;
    if (mode == access::shared) return c.use_holder ? scripts::of_reader_with_holder : scripts::of_reader;
    if (mode == access::exclusive) return c.use_holder ? scripts::of_writer_with_holder : scripts::of_writer;
    if (c.keys && c.keys->permits() != 0) return c.use_holder ? scripts::of_slot_with_holder : scripts::of_slot;
    return c.use_holder ? scripts::of_mutex_with_holder : scripts::of_mutex;
}

/// Returns: the script that the server runs for `c`.
[[nodiscard]] inline script const& script_of(command const& c) noexcept
{
    using enum command::verb;
    auto const place = [](command::verb v) { return static_cast<std::size_t>(v); };
    if (c.what == acquire_all) return scripts::acquire_all;
    if (of_operator(c))
        return *(in_redisson(c) ? scripts::redisson::of_operators
                                : scripts::of_operators)[place(c.what) - place(inspect)];
    auto const& all = recipe_of(c);
    if (c.what == acquire) return *all[static_cast<std::size_t>(c.fence)];
    auto const& one = *all[2 + place(c.what == release && c.waiter ? leave : c.what)];
    return c.together > 1 ? *scripts::many_of(one).many : one;
}

}  // namespace holdfast::redis
