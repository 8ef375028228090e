// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/random.hpp>
#include <holdfast/sim/agenda.hpp>
#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/faults.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// Something that happened in a world.
struct event {
    boot_clock::time_point when;  ///< in the time of the world
    std::string_view what;        ///< in words
    unsigned client;              ///< or `nobody`
    unsigned node;                ///< or `nobody`
    std::uint64_t value;          ///< a fencing token, for example

    static constexpr unsigned nobody = 99;  ///< neither a client nor a node
};

/// A world of its own: a clock that stands still until the next thing happens, a queue of what will happen, and
/// randomness. One thread. The same seed and the same calls give the same history, identified by `hash()`.
///
/// Each kind of fault has randomness of its own for each client and node: whether the 17th message from one to the
/// other is late does not depend on what happens elsewhere. So a schedule can be reduced, decision by decision, and the
/// rest stays as it was.
class world {
public:
    /// The kind of a fault.
    using kind = decision::kind;

    /// Effects: makes a world whose history `seed` decides, and in which `f` goes wrong.
    explicit world(std::uint64_t seed, faults const& f = {}) : faults_{f}, seed_{seed}, chance_{seed} {}

    world(world const&) = delete;
    world& operator=(world const&) = delete;

    /// Returns: the time of the world; it begins at zero.
    [[nodiscard]] boot_clock::time_point now() const noexcept { return now_; }
    /// Returns: the seed that it was made with.
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

    /// Effects: calls `f` at `t`, or now if that has passed; calls for the same time come in the order in which they
    /// were asked for.
    void at(boot_clock::time_point t, task f) { agenda_.add(std::max(t, now_), std::move(f)); }

    /// Effects: does what is next, up to and including `t`. If there is nothing left to do, the time becomes `t`.
    /// Returns: whether there was something to do.
    bool step(boot_clock::time_point t)
    {
        if (agenda_.empty() || agenda_.next() > t) {
            now_ = std::max(now_, t);
            return false;
        }
        now_ = agenda_.next();
        auto next = agenda_.take();
        next();
        return true;
    }

    /// Effects: does everything up to and including `t`.
    void run_until(boot_clock::time_point t)
    {
        while (step(t)) {}
    }

    /// Returns: the next random number.
    [[nodiscard]] std::uint64_t random() noexcept { return chance_.next(); }

    /// Returns: a number in [0, bound); 0 if `bound` is 0.
    [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept { return chance_.below(bound); }

    /// Returns: a random duration in [least, most).
    [[nodiscard]] boot_clock::duration between(boot_clock::duration least, boot_clock::duration most) noexcept
    {
        return least + boot_clock::duration{
                           static_cast<boot_clock::rep>(below(static_cast<std::uint64_t>((most - least).count())))};
    }

    /// Returns: whether a fault that happens in `per_thousand` of 1000 cases happens now. If so, it is counted and
    /// noted.
    [[nodiscard]] bool strikes(kind what, unsigned client, unsigned node, unsigned per_thousand)
    {
        if (per_thousand == 0) return false;
        auto const [drawn, number] = draw(what, client, node);
        return drawn % 1000 < per_thousand && comes_true({what, narrow(client), narrow(node), number});
    }

    /// Returns: whether something that was decided beforehand comes true. If so, it is counted and noted.
    [[nodiscard]] bool comes_true(decision const& d)
    {
        severity_ = hash_of(d);
        if (!decisions_.take(d)) return false;
        ++happened_[d.what];
        auto const who = [](std::uint8_t index) { return index == decision::nobody ? event::nobody : unsigned{index}; };
        if (d.what < kind::clock) note(decision::name(d.what), who(d.client), who(d.node));
        return true;
    }

    /// Returns: how bad the last fault is: a duration in [0, most).
    [[nodiscard]] boot_clock::duration severity(boot_clock::duration most) const noexcept
    {
        return boot_clock::duration{
            most.count() <= 0 ? 0 : static_cast<boot_clock::rep>(severity_ % static_cast<std::uint64_t>(most.count()))};
    }

    /// Returns: how long a message between the two takes.
    [[nodiscard]] boot_clock::duration delay(unsigned client, unsigned node)
    {
        auto const [drawn, number] = draw(kind::late, client, node);
        auto const most = std::max(faults_.shortest_delay, faults_.longest_delay);
        auto const range = static_cast<std::uint64_t>((most - faults_.shortest_delay).count());
        auto const usual = faults_.shortest_delay + (node == faults_.far ? faults_.farther : boot_clock::duration{}) +
                           boot_clock::duration{static_cast<boot_clock::rep>(range == 0 ? 0 : (drawn >> 12U) % range)};
        if (drawn % 1000 >= faults_.late || !comes_true({kind::late, narrow(client), narrow(node), number}))
            return usual;
        return usual + severity(faults_.very_late);
    }

    /// Returns: what goes wrong now.
    [[nodiscard]] faults const& wrong() const noexcept { return faults_; }

    /// Effects: from now on these faults happen.
    void become(faults const& f) noexcept { faults_ = f; }

    /// Returns: how often each fault has happened.
    [[nodiscard]] fault_count& happened() noexcept { return happened_; }
    /// Returns: what chance has decided, by name.
    [[nodiscard]] sim::decisions& decided() noexcept { return decisions_; }

    /// Effects: makes what happened part of the history.
    void note(std::string_view what, unsigned client, unsigned node, std::uint64_t value = 0)
    {
        mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
        mix(what.size() << 40U ^ static_cast<std::uint64_t>(static_cast<unsigned char>(what.front())) << 32U ^
            client << 8U ^ node);
        mix(value);
        if (observer_) observer_({now_, what, client, node, value});
    }

    /// Effects: calls `observer` with everything that happens.
    void observe(std::function<void(event const&)> observer) { observer_ = std::move(observer); }

    /// Returns: a number that identifies everything that was noted.
    [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

private:
    static constexpr std::size_t parties = decision::nobody + 1;

    [[nodiscard]] static std::uint8_t narrow(unsigned index) noexcept
    {
        return static_cast<std::uint8_t>(std::min<unsigned>(index, decision::nobody));
    }

    [[nodiscard]] std::pair<std::uint64_t, std::uint32_t> draw(kind what, unsigned client, unsigned node)
    {
        auto const stream = (static_cast<std::size_t>(what) * parties + narrow(client)) * parties + narrow(node);
        auto const number = drawn_[stream]++;
        return {holdfast::detail::random_sequence{seed_ ^ (std::uint64_t{stream + 1} << 40U) ^ number}.next(), number};
    }

    [[nodiscard]] std::uint64_t hash_of(decision const& d) const noexcept
    {
        auto const name = std::uint64_t{static_cast<std::uint8_t>(d.what)} << 48U ^ std::uint64_t{d.client} << 44U ^
                          std::uint64_t{d.node} << 40U ^ d.number;
        return holdfast::detail::random_sequence{~seed_ ^ name}.next();
    }

    void mix(std::uint64_t value) noexcept
    {
        hash_ = (hash_ ^ value) * 0x9fb21c651e98df25U;
        hash_ ^= hash_ >> 32U;
    }

    faults faults_;
    fault_count happened_;
    sim::decisions decisions_;
    std::uint64_t seed_;
    holdfast::detail::random_sequence chance_;
    std::uint64_t severity_ = 0;
    std::array<std::uint32_t, decision::kinds * parties * parties> drawn_{};
    boot_clock::time_point now_{};
    agenda agenda_;
    std::uint64_t hash_ = 0xcbf29ce484222325U;
    std::function<void(event const&)> observer_;
};

}  // namespace holdfast::sim
