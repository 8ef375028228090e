// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::detail {

/// Says what is to be reported, so that each cause is reported once for each place that has it, however many operations meet it, and once more
/// when it is over there. A place is a server's address, or whatever else tells one from another; empty where there is one only. Thread-safe.
///
/// | a cause at a place | `begins` | `ends`             |
/// |--------------------|----------|--------------------|
/// | not reported       | true     | false              |
/// | reported           | false    | true: not reported |
class report_once {
public:
    /// Returns: whether `why` is to be reported of `where`. Without memory to note it: yes.
    [[nodiscard]] bool begins(std::string_view where, std::error_code why) noexcept
    try {
        std::scoped_lock guard{mutex_};
        auto found = reported_.find(where);
        if (found == reported_.end()) found = reported_.try_emplace(std::string{where}).first;
        return found->second.insert(why).second;
    } catch (std::bad_alloc const&) {
        return true;
    }

    /// Returns: what was reported of `where`, and is over now; none where nothing was.
    [[nodiscard]] std::set<std::error_code> ends(std::string_view where) noexcept
    {
        std::scoped_lock guard{mutex_};
        auto const found = reported_.find(where);
        if (found == reported_.end()) return {};
        auto causes = std::move(found->second);
        reported_.erase(found);
        return causes;
    }

    /// Returns: what was reported of each place; it is over now.
    [[nodiscard]] std::map<std::string, std::set<std::error_code>, std::less<>> end_all() noexcept
    {
        std::scoped_lock guard{mutex_};
        return std::exchange(reported_, {});
    }

    /// Returns: whether `why` had been reported of `where`, and is over now.
    [[nodiscard]] bool ends(std::string_view where, std::error_code why) noexcept
    {
        std::scoped_lock guard{mutex_};
        auto const found = reported_.find(where);
        if (found == reported_.end() || found->second.erase(why) == 0) return false;
        if (found->second.empty()) reported_.erase(found);
        return true;
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::set<std::error_code>, std::less<>> reported_;
};

}  // namespace holdfast::detail
