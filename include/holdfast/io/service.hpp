// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/io/poll_for.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/wake_up.hpp>

#include <cstddef>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::io {

/// Lets the client's own thread serve all reactors of the client that no waiting caller serves.
class service {
public:
    service() = default;
    service(service const&) = delete;
    service& operator=(service const&) = delete;
    ~service() = default;

    /// Returns: the `orphaned` that each of the reactors is made with.
    [[nodiscard]] wake_up const* orphaned() const noexcept { return &orphaned_; }

    /// Effects: adds a reactor, which outlives the calls of `serve`.
    void add(reactor& one)
    {
        reactors_.push_back(&one);
        led_.reserve(reactors_.size());
        most_polled_ += one.most_polled();
        polled_.reserve(most_polled_);
    }

    /// Effects: serves until something has happened, `alarm` is readable, or a while has passed.
    void serve(int alarm) noexcept
    {
        polled_.clear();
        led_.clear();
        polled_.push_back({.fd = alarm, .events = POLLIN, .revents = 0});
        polled_.push_back({.fd = orphaned_.descriptor(), .events = POLLIN, .revents = 0});
        auto until = boot_clock::time_point::max();
        for (auto* const one : reactors_)
            if (one->begin_turn(polled_, until)) led_.push_back(one);
        poll_for(polled_,
                 until == boot_clock::time_point::max() ? boot_clock::duration::max() : until - boot_clock::now());
        if (polled_[1].revents != 0) orphaned_.drain();
        std::size_t first = 2;
        for (auto* const one : led_) first += one->end_turn(polled_.data() + first);
    }

    /// Effects: notes that `serve` is not called for a while.
    void rest() noexcept
    {
        for (auto* const one : reactors_) one->rest();
    }

private:
    wake_up orphaned_;
    std::vector<reactor*> reactors_;
    std::vector<reactor*> led_;
    std::size_t most_polled_ = 2;
    std::vector<pollfd> polled_;
};

}  // namespace holdfast::io
