// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/io/outlet.hpp>
#include <holdfast/io/source.hpp>

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::io {

/// Outlets to be flushed when a lock is given up, and the sources that append to them before. Allocates no memory.
class unsent_outlets {
public:
    [[nodiscard]] bool empty() const noexcept { return count_ == 0 && composers_ == 0; }

    /// Effects: adds `o`, unless it is there. Returns: whether it is there now; false if there is no room for it.
    [[nodiscard]] bool add(std::shared_ptr<outlet> const& o) noexcept
    {
        auto const* const end = all_.begin() + count_;
        if (std::find(all_.cbegin(), end, o) != end) return true;
        if (count_ == all_.size()) return false;
        all_[count_++] = o;
        return true;
    }

    /// Effects: `s` composes before all are taken. Returns: false if there is no room for it.
    bool add_later(source& s) noexcept
    {
        auto const end = later_.begin() + composers_;
        if (std::find(later_.begin(), end, &s) != end) return true;
        if (composers_ == later_.size()) return false;
        later_[composers_++] = &s;
        return true;
    }
    void forget(source const& s) noexcept
    {
        auto const end = later_.begin() + composers_;
        composers_ = static_cast<std::size_t>(std::remove(later_.begin(), end, &s) - later_.begin());
    }

    /// Effects: has those compose that are to; removes all. Returns: those that were here.
    [[nodiscard]] unsent_outlets take() noexcept
    {
        while (composers_ != 0) later_[--composers_]->compose(boot_clock::now());
        unsent_outlets taken;
        std::move(all_.begin(), all_.begin() + count_, taken.all_.begin());
        taken.count_ = std::exchange(count_, 0);
        return taken;
    }

    /// Effects: flushes all; calls `blocked` for each that has to wait until its socket takes more.
    template <class F>
    void flush(F const& blocked) const
    {
        for (std::size_t i = 0; i < count_; ++i)
            if (all_[i]->flush()) blocked();
    }

    /// Effects: if there are several, waits until the last one can be read, or `other`, for `moment` at most. What was
    /// sent on those before it is most likely answered by then, so that all answers cost one wake-up. Returns: whether
    /// the last one can be read.
    bool await_last(int other) const noexcept
    {
        if (count_ < 2) return false;
        std::array<pollfd, 2> two{{{.fd = all_[count_ - 1]->descriptor(), .events = POLLIN, .revents = 0},
                                   {.fd = other, .events = POLLIN, .revents = 0}}};
        return ::poll(two.data(), two.size(), static_cast<int>(moment.count())) > 0 && two[0].revents != 0;
    }

    static constexpr std::chrono::milliseconds moment{2};
    /// Who has slept for so long may wait for that.
    static constexpr std::chrono::milliseconds rest{10};

private:
    std::array<std::shared_ptr<outlet>, 8> all_;
    std::size_t count_ = 0;
    std::array<source*, 8> later_{};
    std::size_t composers_ = 0;  // in `later_`
};

}  // namespace holdfast::io
