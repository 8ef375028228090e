// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/report_once.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/keys.hpp>

#include <atomic>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// What there is to report about the servers of a client: each cause once for each server, and once when it is over.
/// Kept until it is taken by a caller that can tell the user. Thread-safe.
class server_news {
public:
    /// A part of a server that may fail by itself: an answered command does not end what was noted about it.
    static constexpr std::string_view subscription = ", its subscription to releases";
    static constexpr std::string_view queue = ", its queues of waiters";
    static constexpr std::string_view holder = ", its records of holders";

    /// Effects: notes that `server`, or `part` of it, has `why`, unless it is known; `detail()` says more.
    template <class F>
    void begins(std::string const& server, std::error_code why, F&& detail, std::string_view part = {}) noexcept
    try {
        if (once_.begins(server + std::string{part}, why)) add({why, detail(), {.server = server}});
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): not told, for want of memory
    }

    /// Effects: notes that `why` is over, if it was noted.
    void ends(std::string const& server, std::error_code why) noexcept
    try {
        if (once_.ends(server, why)) add(end_of(server, why));
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as above
    }

    /// Effects: notes that all that was noted for `server` is over, except what a proper answer does not disprove: a
    /// right that is missing for another lock, and eviction.
    void answered(std::string const& server) noexcept
    try {
        for (auto const& [where, why] : once_.ends(server)) {
            if (why == errc::may_evict || why == errc::not_permitted)
                static_cast<void>(once_.begins(server, why));
            else
                add(end_of(server, why));
        }
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as above
    }

    /// Effects: notes that all that was noted for a part of `server` is over.
    void works(std::string const& server, std::string_view part) noexcept
    try {
        for (auto const& [where, why] : once_.ends(server + std::string{part})) add(end_of(server, why, part));
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as above
    }

    /// Effects: notes that the fence of a lock was foreign on `server`, and has been replaced.
    void fence_replaced(std::string const& server, lock_keys const& of) noexcept
    try {
        auto const why = make_error_code(errc::foreign_fence);
        auto const key = of.fence().text();
        if (!once_.begins(key, why)) return;
        add(holdfast::detail::error_of(of.name(), {why, server + ", key " + holdfast::quoted(key), server}));
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as above
    }

    /// Returns: what there is to report; no other caller gets it.
    [[nodiscard]] std::vector<error> take() noexcept
    {
        if (!any_.load(std::memory_order_acquire)) return {};
        std::scoped_lock guard{mutex_};
        any_.store(false, std::memory_order_release);
        return std::exchange(items_, {});
    }

private:
    /// If no lock has an `on_error`, no caller takes anything: the newest are kept.
    static constexpr std::size_t most = 128;

    [[nodiscard]] static error end_of(std::string const& server, std::error_code why, std::string_view what = {})
    {
        return {why, server + std::string{what} + ": this is over", {.server = server, .over = true}};
    }

    void add(error one)
    {
        std::scoped_lock guard{mutex_};
        if (items_.size() >= most) items_.erase(items_.begin());
        items_.push_back(std::move(one));
        any_.store(true, std::memory_order_release);
    }

    holdfast::detail::report_once once_;
    std::mutex mutex_;
    std::vector<error> items_;
    std::atomic<bool> any_{false};
};

}  // namespace holdfast::redis
