// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/report_once.hpp>
#include <holdfast/redis/error.hpp>

#include <atomic>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::redis {

/// What there is to tell of the servers of a client, each cause once for each server, and once when it is over; kept until a caller takes it
/// who can tell the user. Thread-safe.
class server_news {
public:
    struct item {
        std::error_code code;
        std::string server;
        std::string text;
        bool over = false;
    };

    /// Effects: notes that `server` has `why`, unless it is known; `detail()` says more.
    template <class F>
    void begins(std::string const& server, std::error_code why, F&& detail) noexcept
    try {
        if (once_.begins(server, why)) add({.code = why, .server = server, .text = detail()});
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): nobody is told, for want of memory
    }

    /// Effects: notes that it is over, where it was noted that it had begun.
    void ends(std::string const& server, std::error_code why) noexcept
    try {
        if (once_.ends(server, why)) add(end_of(server, why));
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as above
    }

    /// Effects: notes that all is over that was noted for `server`, but for what a proper answer does not show to be: a right that is missing for
    /// another lock, and eviction.
    void answered(std::string const& server) noexcept
    try {
        for (auto const& why : once_.ends(server)) {
            if (why == errc::may_evict || why == errc::not_permitted)
                static_cast<void>(once_.begins(server, why));
            else
                add(end_of(server, why));
        }
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as above
    }

    /// Effects: notes that its subscription to releases has `why`, as above. An answered command does not end it.
    template <class F>
    void subscription_begins(std::string const& server, std::error_code why, F&& detail) noexcept
    try {
        if (subscriptions_.begins(server, why)) add({.code = why, .server = server, .text = detail()});
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as above
    }

    /// Effects: notes that all is over that was noted for the subscription to `server`.
    void subscription_works(std::string const& server) noexcept
    try {
        for (auto const& why : subscriptions_.ends(server)) add(end_of(server, why, ", its subscription to releases"));
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): as above
    }

    /// Returns: what is to be told, which nobody else is given.
    [[nodiscard]] std::vector<item> take() noexcept
    {
        if (!any_.load(std::memory_order_acquire)) return {};
        std::scoped_lock guard{mutex_};
        any_.store(false, std::memory_order_release);
        return std::exchange(items_, {});
    }

private:
    /// Nobody takes anything where no lock has an `on_error`.
    static constexpr std::size_t most = 1000;

    [[nodiscard]] static item end_of(std::string const& server, std::error_code why, std::string_view what = {})
    {
        return {.code = why, .server = server, .text = server + std::string{what} + ": this is over", .over = true};
    }

    void add(item one)
    {
        std::scoped_lock guard{mutex_};
        if (items_.size() >= most) return;
        items_.push_back(std::move(one));
        any_.store(true, std::memory_order_release);
    }

    holdfast::detail::report_once once_;
    holdfast::detail::report_once subscriptions_;
    std::mutex mutex_;
    std::vector<item> items_;
    std::atomic<bool> any_{false};
};

}  // namespace holdfast::redis
