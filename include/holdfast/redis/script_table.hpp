// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/holder_scripts.hpp>
#include <holdfast/redis/joint_script.hpp>
#include <holdfast/redis/permit_scripts.hpp>
#include <holdfast/redis/redisson_scripts.hpp>
#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/shared_scripts.hpp>

#include <array>
#include <cstddef>

namespace holdfast::inline HOLDFAST_ABI::redis {

namespace scripts {

/// For each recipe: those of an acquire in the order of `fence_source`, then those of the other verbs in theirs. What
/// an exclusive lease of a `shared_mutex` shares with that of a mutex is there once.
inline constexpr std::array<script const*, 19> all{&acquire,
                                                   &acquire_by_clock,
                                                   &acquire_by_count,
                                                   &confirm,
                                                   &extend,
                                                   &reacquire,
                                                   &release,
                                                   &give_back,
                                                   &acquire_exclusive,
                                                   &acquire_exclusive_by_clock,
                                                   &acquire_exclusive_by_count,
                                                   &release_exclusive,
                                                   &acquire_shared,
                                                   &acquire_shared_by_clock,
                                                   &acquire_shared_by_count,
                                                   &confirm_shared,
                                                   &extend_shared,
                                                   &reacquire_shared,
                                                   &release_shared};

}  // namespace scripts

/// How many scripts there are.
inline constexpr std::size_t number_of_scripts = scripts::all.size() + scripts::with_holder.size() +
                                                 scripts::of_operators.size() + scripts::redisson::all.size() +
                                                 scripts::of_slots.size() + 1;

namespace detail {

/// Returns: the place in `scripts::with_holder` of the script for `c`.
[[nodiscard]] inline std::size_t number_with_holder(command const& c) noexcept
{
    using enum command::verb;
    constexpr std::size_t sources = 3;
    if (c.what == acquire) return static_cast<std::size_t>(c.fence);
    if (c.what == extend || c.what == reacquire) return sources + (c.what == extend ? 0 : 1);
    return sources + 2 + (c.waiter ? 1 : 0);
}

/// Returns: the place in `scripts::redisson::all` of the script for `c`. On a single server, as this layout's are, none
/// confirms a fence, and a renewal that would reacquire is one that extends.
[[nodiscard]] inline std::size_t number_in_redisson(command const& c) noexcept
{
    using enum command::verb;
    constexpr std::size_t of_a_mode = 4;
    if (of_operator(c)) return 3 * of_a_mode + (c.what == inspect ? 0 : 1);
    auto const first = of_a_mode * static_cast<std::size_t>(mode_of(c));
    if (c.what == acquire) return first + (c.fence == fence_source::none ? 0 : 1);
    return first + (c.what == release || c.what == leave ? 3 : 2);
}

/// Returns: the place in `scripts::of_slots` of the script for `c`.
[[nodiscard]] inline std::size_t number_of_slot(command const& c) noexcept
{
    using enum command::verb;
    constexpr std::size_t sources = 3;
    auto const first = c.use_holder ? scripts::of_slots.size() / 2 : 0;
    if (c.what == acquire) return first + static_cast<std::size_t>(c.fence);
    return first + sources + (c.what == extend ? 0 : 1);
}

}  // namespace detail

/// Returns: the place of the script that the server runs for `c` among `scripts::all`, then those with a record of the
/// holder, those of operators, those of Redisson's layout, those of the slots of a semaphore, and that for several
/// locks.
[[nodiscard]] inline std::size_t script_number(command const& c) noexcept
{
    if (c.what == command::verb::acquire_all) return number_of_scripts - 1;
    if (in_redisson(c) && c.what != command::verb::count)
        return scripts::all.size() + scripts::with_holder.size() + scripts::of_operators.size() +
               detail::number_in_redisson(c);
    if (of_operator(c))
        return scripts::all.size() + scripts::with_holder.size() + static_cast<std::size_t>(c.what) -
               static_cast<std::size_t>(command::verb::inspect);
    if (knows_number(c)) return number_of_scripts - 1 - scripts::of_slots.size() + detail::number_of_slot(c);
    if (c.use_holder) return scripts::all.size() + detail::number_with_holder(c);
    constexpr std::size_t sources = 3;  // an acquire has a script for each source of its fence
    constexpr std::size_t exclusive = 8;
    constexpr std::size_t shared = exclusive + sources + 1;
    using enum command::verb;
    auto const mode = mode_of(c);
    auto const first = mode == access::sole ? 0 : mode == access::exclusive ? exclusive : shared;
    if (c.what == acquire) return first + static_cast<std::size_t>(c.fence);
    bool const gives_back = c.what == release || c.what == leave;
    if (mode == access::exclusive && gives_back) return exclusive + sources;
    if (mode == access::shared) return shared + sources - 1 + static_cast<std::size_t>(gives_back ? release : c.what);
    return sources - 1 + static_cast<std::size_t>(c.what == release && c.waiter ? leave : c.what);
}

/// Returns: the script that the server runs for `c`.
[[nodiscard]] inline script const& script_of(command const& c) noexcept
{
    auto at = script_number(c);
    if (at < scripts::all.size()) return *scripts::all[at];
    at -= scripts::all.size();
    if (at < scripts::with_holder.size()) return *scripts::with_holder[at];
    at -= scripts::with_holder.size();
    if (at < scripts::of_operators.size()) return *scripts::of_operators[at];
    at -= scripts::of_operators.size();
    if (at < scripts::redisson::all.size()) return *scripts::redisson::all[at];
    at -= scripts::redisson::all.size();
    return at < scripts::of_slots.size() ? *scripts::of_slots[at] : scripts::acquire_all;
}

}  // namespace holdfast::redis
