// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/greeting.hpp>
#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/reconnect_pause.hpp>
#include <holdfast/redis/server_news.hpp>
#include <holdfast/redis/server_status.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// What one transport has seen of a server, for `status()` and for reports. Guarded by the transport's lock.
///
/// | reported | when |
/// |---|---|
/// | one of several servers has no vote | at once: it shows nowhere else while the others vote |
/// | its connection is lost, or an answer does not come in time | the second time without a proper answer in between |
/// | a subscription to releases fails | the second time, while commands are answered |
class server_record {
public:
    /// `one_of_many`: other servers may vote in its place.
    server_record(std::string server, bool one_of_many, std::shared_ptr<server_news> news)
        : server_{std::move(server)}, one_of_many_{one_of_many}, news_{std::move(news)}
    {
    }

    /// Effects: notes that a connection was begun.
    void asked() noexcept { asked_ = true; }

    /// Effects: notes what it said about itself; `wall` is this machine's clock, since 1970.
    void greeted(greeting const& g, std::chrono::microseconds wall) noexcept
    {
        if (g.server_time.count() != 0) {
            doubt_ = std::chrono::ceil<std::chrono::microseconds>(g.took) / 2;
            ahead_ = g.server_time - wall + doubt_;
            round_trip_ = std::chrono::ceil<std::chrono::microseconds>(g.took);
        }
        if (g.eviction.empty()) return;
        may_evict_ = g.eviction != "noeviction";
        if (may_evict_)
            news_->begins(server_, errc::may_evict,
                          [&] { return server_ + " (maxmemory-policy " + g.eviction.substr(0, 32) + ")"; });
        else
            news_->ends(server_, errc::may_evict);
    }

    /// Effects: notes that it refused, was not reached, or has no vote.
    template <class F>
    void failed(std::error_code why, F&& detail) noexcept
    {
        last_error_ = why;
        bool const passing = why == errc::connection_lost || why == errc::no_answer;
        if (!one_of_many_ || why == errc::wrong_type || (passing && ++misses_ < 2)) return;
        news_->begins(server_, why, [&] {
            auto const more = detail();
            return server_ + (more.empty() ? "" : " (" + more + ")") + " has no vote";
        });
    }

    /// Effects: notes a proper answer to what was sent at `sent`.
    void answered(boot_clock::time_point sent, boot_clock::time_point now) noexcept
    {
        round_trip_ = std::chrono::ceil<std::chrono::microseconds>(now - sent);
        misses_ = 0;
        answered_since_ = true;
        if (!std::exchange(last_error_, {})) return;
        if (one_of_many_) news_->answered(server_);
    }

    /// Effects: notes that the fence of a lock was foreign there and has been replaced; reported once for each lock.
    void replaced_fence(lock_keys const& of) noexcept { news_->fence_replaced(server_, of); }

    /// Effects: notes that the user may not use a part of the server, which `what` says; reported once.
    void refused(std::string_view part, char const* what) noexcept
    {
        news_->begins(
            server_, errc::not_permitted, [&] { return server_ + what; }, part);
    }

    /// Effects: notes that its subscription was refused or ended. Not reported: a single failure, or one together with
    /// the connections for commands.
    template <class F>
    void subscription_failed(std::error_code why, F&& detail) noexcept
    {
        stands_since_.reset();
        if (!std::exchange(answered_since_, false) || ++subscription_misses_ < 2) return;
        subscription_error_ = why;
        auto const text = [&] {
            auto const more = detail();
            return server_ + ": its subscription to releases fails" + (more.empty() ? "" : " (" + more + ")") +
                   "; waiters look by the clock instead";
        };
        news_->begins(server_, why, text, server_news::subscription);
    }

    /// Effects: notes that a channel was subscribed to.
    void subscribed(boot_clock::time_point now) noexcept
    {
        if (!stands_since_) stands_since_ = now;
    }

    /// Effects: notes that the subscription is there. One that failed must last for a while: a flood would come again
    /// after each confirmation.
    void subscription_stands(boot_clock::time_point now) noexcept
    {
        if (subscription_misses_ == 0 || !stands_since_ || now - *stands_since_ < trusted_after) return;
        subscription_misses_ = 0;
        if (std::exchange(subscription_error_, {})) news_->works(server_, server_news::subscription);
    }

    /// Effects: fills in what is known here. Requires: `reached` and `why_not` are those of the connection.
    void fill(server_status& s) const
    {
        s.server = server_;
        s.asked = asked_;
        s.last_error = last_error_;
        bool const passing = last_error_ == errc::connection_lost || last_error_ == errc::no_answer;
        if (last_error_ && !passing && !s.why_not) s.why_not = last_error_;
        s.votes = s.reached && !s.why_not;
        s.clock_ahead = ahead_;
        s.clock_doubt = doubt_;
        s.round_trip = round_trip_;
        s.may_evict = may_evict_;
        s.subscription_error = subscription_error_;
    }

private:
    /// As long as a connection that broke the protocol is distrusted: the longest pause before the next one.
    static constexpr auto trusted_after = reconnect_pause::longest_distrust;

    std::string server_;
    bool one_of_many_;
    std::shared_ptr<server_news> news_;
    bool asked_ = false;
    bool may_evict_ = false;
    unsigned misses_ = 0;
    std::error_code last_error_;
    bool answered_since_ = false;  // a command was answered since the subscription last failed
    unsigned subscription_misses_ = 0;
    std::error_code subscription_error_;  // as it was reported
    std::optional<boot_clock::time_point> stands_since_;
    std::optional<std::chrono::microseconds> ahead_;
    std::chrono::microseconds doubt_{0};
    std::optional<std::chrono::microseconds> round_trip_;
};

}  // namespace holdfast::redis
