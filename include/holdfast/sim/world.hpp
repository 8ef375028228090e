// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/random.hpp>
#include <holdfast/sim/faults.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sim {

/// Something that happened in a world.
struct event {
    boot_clock::time_point when;
    std::string_view what;
    unsigned client;  ///< or `nobody`
    unsigned node;    ///< or `nobody`
    std::uint64_t value;

    static constexpr unsigned nobody = 99;
};

/// A world of its own: a clock that stands still until the next thing happens, a queue of what will, and chance. One thread. The same
/// seed and the same calls give the same history, which `hash()` stands for.
class world {
public:
    explicit world(std::uint64_t seed, faults const& f = {}) : faults_{f}, chance_{seed} {}

    world(world const&) = delete;
    world& operator=(world const&) = delete;

    [[nodiscard]] boot_clock::time_point now() const noexcept { return now_; }

    /// Effects: has `f` called at `t`, or now where that has passed; calls for the same time in the order in which they were asked for.
    void at(boot_clock::time_point t, std::function<void()> f)
    {
        agenda_.push_back({std::max(t, now_), asked_++, std::move(f)});
        std::push_heap(agenda_.begin(), agenda_.end(), later);
    }

    /// Effects: does what is next, up to and including `t`; with nothing left to do it becomes `t`.
    /// Returns: whether there was something to do.
    bool step(boot_clock::time_point t)
    {
        if (agenda_.empty() || agenda_.front().when > t) {
            now_ = std::max(now_, t);
            return false;
        }
        std::pop_heap(agenda_.begin(), agenda_.end(), later);
        auto next = std::move(agenda_.back());
        agenda_.pop_back();
        now_ = next.when;
        next.f();
        return true;
    }

    void run_until(boot_clock::time_point t)
    {
        while (step(t)) {}
    }

    [[nodiscard]] std::uint64_t random() noexcept { return chance_.next(); }

    /// Returns: a number in [0, bound); 0 where `bound` is 0.
    [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept { return chance_.below(bound); }

    /// Returns: true in `per_thousand` of 1000 calls.
    [[nodiscard]] bool happens(unsigned per_thousand) noexcept { return per_thousand != 0 && chance_.below(1000) < per_thousand; }

    [[nodiscard]] boot_clock::duration between(boot_clock::duration least, boot_clock::duration most) noexcept
    {
        return least + boot_clock::duration{static_cast<boot_clock::rep>(below(static_cast<std::uint64_t>((most - least).count())))};
    }

    /// Returns: how long a message takes.
    [[nodiscard]] boot_clock::duration delay() noexcept
    {
        auto const usual = between(faults_.shortest_delay, faults_.longest_delay);
        if (!happens(faults_.late)) return usual;
        ++happened_.late;
        return usual + between({}, faults_.very_late);
    }

    [[nodiscard]] faults const& wrong() const noexcept { return faults_; }

    /// Effects: from now on these faults happen.
    void become(faults const& f) noexcept { faults_ = f; }

    [[nodiscard]] fault_count& happened() noexcept { return happened_; }

    /// Effects: makes what happened part of the history.
    void note(std::string_view what, unsigned client, unsigned node, std::uint64_t value = 0)
    {
        mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
        mix(what.size() << 32U ^ static_cast<unsigned char>(what.front()));
        mix(std::uint64_t{client} << 32U ^ node);
        mix(value);
        if (observer_) observer_({now_, what, client, node, value});
    }

    /// Effects: has `observer` told of everything that happens.
    void observe(std::function<void(event const&)> observer) { observer_ = std::move(observer); }

    /// Returns: a number that stands for everything that was noted.
    [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

private:
    struct item {
        boot_clock::time_point when;
        std::uint64_t order;
        std::function<void()> f;
    };

    static bool later(item const& a, item const& b) noexcept { return a.when != b.when ? a.when > b.when : a.order > b.order; }

    void mix(std::uint64_t value) noexcept
    {
        hash_ = (hash_ ^ value) * 0x9fb21c651e98df25U;
        hash_ ^= hash_ >> 32U;
    }

    faults faults_;
    fault_count happened_;
    holdfast::detail::random_sequence chance_;
    boot_clock::time_point now_{};
    std::uint64_t asked_ = 0;
    std::vector<item> agenda_;
    std::uint64_t hash_ = 0xcbf29ce484222325U;
    std::function<void(event const&)> observer_;
};

}  // namespace holdfast::sim
