// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Decides what to report: each cause once for each place that has it, however many operations meet it, and once more
/// when it is over there. A place is a server's address, or something else that distinguishes it; empty if there is
/// only one. Thread-safe.
///
/// | a cause at a place | `begins` | `ends`             |
/// |--------------------|----------|--------------------|
/// | not reported       | true     | false              |
/// | reported           | false    | true: not reported |
class report_once {
public:
    /// The causes by their places; of one place in the order in which they began.
    using causes = std::multimap<std::string, std::error_code, std::less<>>;

    /// Returns: whether `why` is to be reported of `where`; true if there is no memory to note it.
    [[nodiscard]] bool begins(std::string_view where, std::error_code why) noexcept
    try {
        std::scoped_lock guard{mutex_};
        if (find(where, why) != reported_.end()) return false;
        reported_.emplace(where, why);
        return true;
    } catch (std::bad_alloc const&) {
        return true;
    }

    /// Returns: what was reported of `where`, and is over now; none if nothing was.
    [[nodiscard]] causes ends(std::string_view where) noexcept
    {
        std::scoped_lock guard{mutex_};
        causes over;
        for (auto i = reported_.find(where); i != reported_.end(); i = reported_.find(where))
            over.insert(reported_.extract(i));
        return over;
    }

    /// Returns: what was reported of each place; it is over now.
    [[nodiscard]] causes end_all() noexcept
    {
        std::scoped_lock guard{mutex_};
        return std::exchange(reported_, {});
    }

    /// Returns: whether `why` had been reported of `where`, and is over now.
    [[nodiscard]] bool ends(std::string_view where, std::error_code why) noexcept
    {
        std::scoped_lock guard{mutex_};
        auto const found = find(where, why);
        if (found == reported_.end()) return false;
        reported_.erase(found);
        return true;
    }

private:
    [[nodiscard]] causes::iterator find(std::string_view where, std::error_code why) noexcept
    {
        auto one = reported_.lower_bound(where);
        while (one != reported_.end() && one->first == where && one->second != why) ++one;
        return one != reported_.end() && one->first == where ? one : reported_.end();
    }

    std::mutex mutex_;
    causes reported_;
};

}  // namespace holdfast::detail
