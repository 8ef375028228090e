// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/random.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/sim/clock.hpp>
#include <holdfast/sim/host.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

/// What chance decides before a schedule begins.
class schedule_chance {
public:
    explicit schedule_chance(std::uint64_t seed) : sequence_{seed} {}

    [[nodiscard]] std::uint64_t below(std::uint64_t n) { return sequence_.below(n); }
    [[nodiscard]] bool one_in(unsigned n) { return below(n) == 0; }
    [[nodiscard]] boot_clock::duration up_to(boot_clock::duration most)
    {
        return boot_clock::duration{
            static_cast<boot_clock::duration::rep>(below(static_cast<std::uint64_t>(most.count())))};
    }
    [[nodiscard]] std::chrono::milliseconds ms(std::int64_t least, std::int64_t most)
    {
        return std::chrono::milliseconds{
            least + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most - least + 1)))};
    }

private:
    holdfast::detail::random_sequence sequence_;
};

/// A process on a computer of its own, as a client of simulated servers.
class lock_client {
public:
    lock_client() = default;
    lock_client(lock_client const&) = delete;
    lock_client& operator=(lock_client const&) = delete;
    virtual ~lock_client() = default;

    [[nodiscard]] virtual sim::host& host() noexcept = 0;

    /// Effects: the process is killed: it stands still for a year, and its connections end.
    virtual void kill() = 0;

    /// Returns: what is behind a `mutex` of that name.
    [[nodiscard]] virtual std::shared_ptr<detail::lock_object> make_lock(std::string_view name,
                                                                         lock_options options) = 0;
};

/// The servers of a schedule, and their clients.
class lock_site {
public:
    using time_point = boot_clock::time_point;
    using duration = boot_clock::duration;
    using milliseconds = std::chrono::milliseconds;

    lock_site() = default;
    lock_site(lock_site const&) = delete;
    lock_site& operator=(lock_site const&) = delete;
    virtual ~lock_site() = default;

    /// Returns: one more client, which may have connected, by `chance`.
    virtual lock_client& add(sim::clock c, schedule_chance& chance) = 0;

    /// Effects: until `over` things go wrong with the servers, and with the ways to them. Returns: when the last of
    /// that has had its effect.
    virtual time_point disturb(time_point over, schedule_chance& chance) = 0;

    /// Effects: from now on nothing goes wrong any more.
    virtual void settle() {}

    /// Returns: the greatest `stop_margin` of a lock.
    [[nodiscard]] virtual milliseconds most_margin() const = 0;

    /// Returns: how long a client may take until it can ask.
    [[nodiscard]] virtual duration arrival() const { return {}; }

    /// Returns: how long a lease of one that died, or whose answer was lost, may be in the way.
    [[nodiscard]] virtual duration dead_lease() const = 0;

    /// Effects: runs the world until nothing of those that are gone may be left. `undisturbed`: none was killed, and
    /// nothing went wrong. Returns: what is left of the locks of these names.
    [[nodiscard]] virtual std::vector<std::string> remains(std::vector<std::string> const& names, bool undisturbed) = 0;

    /// Returns: what it is, for people.
    [[nodiscard]] virtual std::string about() const = 0;
};

}  // namespace holdfast::test
