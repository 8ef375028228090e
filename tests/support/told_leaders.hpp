// SPDX-License-Identifier: MIT
#pragma once

#include "eventually.hpp"

#include <holdfast/adapters/election_observer_options.hpp>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

namespace holdfast::test {

/// What an `election_observer` has told, in order.
class told_leaders {
public:
    [[nodiscard]] election_observer_options options()
    {
        return {.on_change =
                    [this](std::optional<lock_holder> const& leader) {
                        std::scoped_lock guard{mutex_};
                        all_.push_back(leader);
                    },
                .on_error =
                    [this](error const& e) {
                        std::scoped_lock guard{mutex_};
                        failing_ = e.over() ? std::error_code{} : e.code();
                    },
                .interval = std::chrono::milliseconds{5}};
    }

    [[nodiscard]] std::vector<std::optional<lock_holder>> all() const
    {
        std::scoped_lock guard{mutex_};
        return all_;
    }
    [[nodiscard]] std::size_t count() const { return all().size(); }

    /// Returns: whether the last one told comes to be a leader, or none.
    [[nodiscard]] bool leads(bool expected) const
    {
        return eventually([&] { return count() > 0 && all().back().has_value() == expected; }, std::chrono::minutes{5});
    }

    /// Returns: whether the last report comes to be this.
    [[nodiscard]] bool reports(errc why) const
    {
        return eventually([&] { return last_report() == why; }, std::chrono::minutes{5});
    }
    /// Returns: whether what was reported comes to be over.
    [[nodiscard]] bool recovers() const
    {
        return eventually([&] { return !last_report(); }, std::chrono::minutes{5});
    }

private:
    [[nodiscard]] std::error_code last_report() const
    {
        std::scoped_lock guard{mutex_};
        return failing_;
    }

    mutable std::mutex mutex_;
    std::vector<std::optional<lock_holder>> all_;
    std::error_code failing_;
};

}  // namespace holdfast::test
