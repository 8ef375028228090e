// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

namespace holdfast {

/// Something that goes on by itself until it is done, with a deadline of its own, and for which a thread may wait.
class awaited {
public:
    [[nodiscard]] virtual bool done() const noexcept = 0;

    /// Returns: when `on_time` is due; `time_point::max()` for never.
    [[nodiscard]] virtual boot_clock::time_point wake_at() const noexcept = 0;
    virtual void on_time(boot_clock::time_point now) = 0;

protected:
    virtual ~awaited() = default;

private:
    friend class awaited_link;
    void* link_ = nullptr;
};

/// Gives whoever runs awaited things a place in each to note who sleeps for it.
class awaited_link {
public:
    static void set(awaited& one, void* link) noexcept { one.link_ = link; }
    [[nodiscard]] static void* get(awaited const& one) noexcept { return one.link_; }
};

}  // namespace holdfast
