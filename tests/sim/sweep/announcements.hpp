// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/sim/host.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace holdfast::test {

/// A loss is told, and so is that the lease is at risk: before, if there was time for a renewal to fail.
class announcements {
public:
    using time_point = boot_clock::time_point;
    using duration = boot_clock::duration;

    /// The end of a lease that was lost, in the time of the world.
    struct loss {
        time_point at{};
        bool by_itself = false;                  ///< it was not renewed in time; otherwise the store gave it up
        time_point awake_since{};                ///< its holder
        time_point at_risk = time_point::max();  ///< when the holder was told that it is at risk; `max()` for never
        time_point told = time_point::max();     ///< of the loss
    };

    /// Returns: what is wrong with what the holder of a lease of `ttl` was told; nothing where all is well.
    [[nodiscard]] static std::optional<std::string> breach(loss const& of, duration ttl)
    {
        if (of.told == time_point::max()) return "a loss was not told";
        if (of.at_risk > of.told) return "a loss was told, but not that the lease is at risk";
        bool const in_time = of.awake_since + ttl <= of.at;
        if (of.by_itself && in_time && of.at_risk >= of.at)
            return "a lease ended, and its holder was not told before that it is at risk";
        return {};
    }

    /// Listens to what the holder of `of` is told. Its functions are called by `in`, its process. `hardly_any`: a
    /// warning is excused if less than that is left of the lease.
    announcements(sim::host& in, holdfast::lease of, duration hardly_any)
        : process_{in},
          lease_{std::move(of)},
          hardly_any_{hardly_any},
          at_loss_{lease_.lost_token(), [this] { told_ = process_.present(); }}
    {
        listen();
    }

    /// Effects: looks at a lease that is held. Returns: whether a holder that is told of a risk could know better: it
    /// was renewed since the last look, nothing of it has failed since, and it does not end soon.
    [[nodiscard]] bool too_worried()
    {
        auto const now = process_.present();
        auto const ends = lease_.expires_at();
        bool const renewed = std::exchange(ends_, ends) < ends;
        bool const awake = process_.awake_since() <= std::exchange(looked_, now);
        bool const worried = lease_.at_risk().stop_requested();
        if (warned_ != time_point::max() && !worried) listen();
        return renewed && awake && worried && !ends_soon();
    }

    /// Returns: whether the holder was told that its lease is at risk, and that is not excused.
    [[nodiscard]] bool warned() const noexcept { return warned_ != time_point::max() && !ended_soon_; }

    /// Returns: how it ended. Requires: it is lost, and its process has acted since.
    [[nodiscard]] loss lost() const
    {
        bool const by_itself = process_.now() >= ends_;
        return {.at = by_itself ? process_.when(ends_) : process_.present(),
                .by_itself = by_itself,
                .awake_since = process_.awake_since(),
                .at_risk = warned_,
                .told = told_};
    }

private:
    using callback = std::stop_callback<std::function<void()>>;

    void listen()
    {
        at_risk_ = nullptr;
        warned_ = time_point::max();
        at_risk_ = std::make_unique<callback>(lease_.at_risk(), [this] {
            ended_soon_ = ends_soon();
            warned_ = process_.present();
        });
    }

    [[nodiscard]] bool ends_soon() const noexcept { return lease_.expires_at() < process_.now() + hardly_any_; }

    sim::host& process_;
    holdfast::lease const lease_;
    duration const hardly_any_;
    time_point ends_ = lease_.expires_at();
    time_point looked_ = process_.present();
    time_point warned_ = time_point::max();
    time_point told_ = time_point::max();
    bool ended_soon_ = false;
    callback at_loss_;
    std::unique_ptr<callback> at_risk_;
};

}  // namespace holdfast::test
