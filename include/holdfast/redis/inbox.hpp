// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/listener.hpp>
#include <holdfast/redis/waiter_id.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Where the servers call the waiters of a shard: one channel for all of its locks, listened to on every node where
/// one waits, for as long as the client lives. So a wait costs no subscription of its own. A call names the waiter and
/// the lock; if that wait is over, the next waiter is called in its place.
class inbox final : public listener {
public:
    /// Calls the next waiter for a lock, in place of one that does not wait any more.
    using pass_on = std::function<void(unsigned node, waiter_id const& w, std::string_view lock)>;

    inbox(std::uint64_t number, pass_on f)
        : number_{number},
          channel_{"holdfast:wake:" + std::string{waiter_text{{.inbox = number}}.inbox()}},
          pass_on_{std::move(f)}
    {
    }

    [[nodiscard]] std::string const& channel() const noexcept { return channel_; }

    /// Returns: the waiter that `whom` is from now on, until it leaves. `whom` is told when it is its turn; null: it is
    /// never called. Throws: `std::bad_alloc`.
    [[nodiscard]] waiter_id enter(listener* whom, std::chrono::milliseconds reserve)
    {
        ++last_;
        if (whom) waiters_.emplace(last_, whom);
        return {.inbox = number_, .number = last_, .reserve = reserve};
    }

    void leave(waiter_id const& w) noexcept { waiters_.erase(w.number); }

    /// Returns: whether the node calls waiters.
    [[nodiscard]] bool works(unsigned node) const noexcept { return works_.has(node); }
    [[nodiscard]] bool works() const noexcept { return !works_.empty(); }

    /// Returns: whether it cannot be listened to there now.
    [[nodiscard]] bool fails(unsigned node) const noexcept { return fails_.has(node); }

    /// Returns: whether the user may not listen to this channel.
    [[nodiscard]] bool refused(unsigned node) const noexcept { return refused_.has(node); }

    /// Returns: whether it was asked to be listened to. Effects: it is from now on.
    [[nodiscard]] bool begins(unsigned node) noexcept
    {
        bool const first = !asked_.has(node);
        asked_.add(node);
        return first;
    }

    /// Effects: it was not asked to be listened to: there was no memory for that.
    void not_begun(unsigned node) noexcept { asked_.remove(node); }

    void on_answer(unsigned, answer const&, boot_clock::time_point) override {}

    void on_watching(unsigned node, boot_clock::time_point now) override
    {
        works_.add(node);
        fails_.remove(node);
        refused_.remove(node);
        tell_all([&](listener& l) { l.on_watching(node, now); });
    }

    void on_watch_failed(unsigned node, std::error_code why, boot_clock::time_point now) override
    {
        works_.remove(node);
        fails_.add(node);
        if (why == holdfast::errc::misconfigured) {
            if (refused_.has(node)) return;  // they listen elsewhere, since it was refused before
            refused_.add(node);
        }
        tell_all([&](listener& l) { l.on_watch_failed(node, why, now); });
    }

    void on_message(unsigned node, std::string_view text, boot_clock::time_point now) override
    {
        auto const split = text.find(' ');
        auto const who = waiter_text::read(number_, text.substr(0, split));
        if (!who || who.number > last_ || split == std::string_view::npos) return;
        auto const found = waiters_.find(who.number);
        if (found != waiters_.end()) return found->second->on_released(node, now);
        auto const lock = text.substr(split + 1);
        if (!lock.empty()) pass_on_(node, who, lock);  // a long name is not said
    }

private:
    /// One that is told may leave, or make others leave.
    template <class F>
    void tell_all(F const& f)
    {
        std::vector<std::uint64_t> all;
        all.reserve(waiters_.size());
        for (auto const& [number, whom] : waiters_) all.push_back(number);
        for (auto const number : all)
            if (auto const found = waiters_.find(number); found != waiters_.end()) f(*found->second);
    }

    std::uint64_t number_;
    std::string channel_;
    pass_on pass_on_;
    std::unordered_map<std::uint64_t, listener*> waiters_;
    std::uint64_t last_ = 0;
    node_set asked_;
    node_set works_;
    node_set fails_;
    node_set refused_;
};

}  // namespace holdfast::redis
