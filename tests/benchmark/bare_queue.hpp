// SPDX-License-Identifier: MIT
//
// What limits a crowd of holdfast's own: the same protocol, and nothing else. One thread sends the library's scripts
// over blocking hiredis, with two connections to each server, in the order of docs/queue-of-waiters.md, and with simpler
// pauses. It does not renew or announce a loss, and outlives no fault.
#pragma once

#include "bare_redis.hpp"

#include <holdfast/redis/scripts.hpp>

#include <hiredis/hiredis.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::benchmark {

class bare_queue {
public:
    /// `number`: that of the process.
    bare_queue(std::vector<std::uint16_t> const& ports, unsigned number, std::chrono::milliseconds ttl)
        : inbox_{"00000000" + std::to_string(10'000'000 + number)},
          ttl_{std::to_string(ttl.count())},
          bound_{ports.size() == 1 ? "86400000000" : std::to_string(3 * lead_of(ttl))},
          lead_{std::to_string(lead_of(ttl))},
          take_{ports.size() == 1 ? redis::scripts::acquire_by_clock : redis::scripts::acquire_by_count}
    {
        for (auto const port : ports) {
            auto& one = servers_.emplace_back(port);
            for (auto const& script : {take_, redis::scripts::confirm, give_, give_back_}) one.ask.load(script.text());
            one.hear.subscribe("holdfast:wake:" + inbox_);
        }
    }

    void lock()
    {
        entered_ = clock::now();
        score_ = clock_of_servers();
        after_minority_ = first_after_minority;
        waits_ = true;
        for (++waiter_; !ask();) wait_for_calls();
        waits_ = false;
    }

    void unlock()
    {
        begin_step();
        for (auto& to : servers_)
            send(to, what::gives, {"EVALSHA", give_.sha1, "3", key, queue, next, token_.view(), channel});
        if (!majority_says_yes()) throw std::runtime_error{"the bare queue: another had the lock, too"};
    }

private:
    using clock = std::chrono::steady_clock;

    enum class what : std::uint8_t { takes, confirms, gives, leaves };

    /// A command that is not answered yet.
    struct request {
        what is;
        std::uint64_t step;
        std::uint64_t waiter;
    };

    struct server {
        explicit server(std::uint16_t port) : ask{port}, hear{port} {}

        bare_redis ask;
        bare_redis hear;
        std::deque<request> owed{};
        std::optional<long long> answer{};  // in this step; positive: yes, and to an acquire the fence
        bool called = false;                // since the step began
    };

    static constexpr std::string_view key = "orders";
    static constexpr std::string_view fence = "holdfast:fence:{orders}";
    static constexpr std::string_view queue = "holdfast:queue:{orders}";
    static constexpr std::string_view next = "holdfast:next:{orders}";
    static constexpr std::string_view channel = "holdfast:free:{orders}";
    static constexpr std::string_view fence_lifetime = "3600000";
    static constexpr auto const& give_ = redis::scripts::release;
    static constexpr auto const& give_back_ = redis::scripts::give_back;

    static constexpr std::chrono::milliseconds longest_wait{250};
    static constexpr std::chrono::milliseconds first_after_minority{10};
    static constexpr std::chrono::milliseconds after_majority{1};

    static bool answered(server const& s) { return s.answer.has_value(); }
    static bool said_yes(server const& s) { return s.answer.value_or(0) > 0; }
    static bool said_no(server const& s) { return s.answer.value_or(1) <= 0; }
    static bool has_called(server const& s) { return s.called; }

    /// By how much the masters' clocks may differ, in µs; the ttl is their guard.
    static std::int64_t lead_of(std::chrono::milliseconds ttl) { return std::chrono::microseconds{ttl}.count() / 2; }

    /// In µs: all are on this machine.
    static std::int64_t clock_of_servers()
    {
        return std::chrono::duration_cast<std::chrono::microseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
            .count();
    }

    [[nodiscard]] std::size_t majority() const { return servers_.size() / 2 + 1; }

    template <class F>
    [[nodiscard]] std::size_t of_servers(F const& is_so) const
    {
        return static_cast<std::size_t>(std::count_if(servers_.begin(), servers_.end(), is_so));
    }

    /// Effects: asks all. What a minority has granted is given back. Returns: whether it has the lock.
    bool ask()
    {
        token_ = {};
        begin_step();
        auto const waiter = waiter_text(waiter_);
        auto const score = score_text();
        auto const proposal = std::to_string(clock_of_servers());
        for (auto& to : servers_)
            if (servers_.size() == 1)
                send(to, what::takes,
                     {"EVALSHA", take_.sha1, "4", key, fence, queue, next, token_.view(), ttl_, "64", fence_lifetime,
                      bound_, waiter, score});
            else
                send(to, what::takes,
                     {"EVALSHA", take_.sha1, "4", key, fence, queue, next, token_.view(), ttl_, "64", fence_lifetime,
                      bound_, proposal, lead_, "1", waiter, score});
        if (!majority_says_yes()) {
            for (auto& to : servers_)
                if (said_yes(to))
                    send(to, what::leaves,
                         {"EVALSHA", give_back_.sha1, "3", key, queue, next, token_.view(), channel, waiter, score});
            return false;
        }
        settle_fence();
        for (auto& to : servers_) {
            if (said_no(to)) leave(to, waiter_);
            to.ask.flush();
        }
        return true;
    }

    /// Effects: waits until a majority says yes, or all have answered.
    bool majority_says_yes()
    {
        serve_until([this] { return of_servers(&said_yes) >= majority() || of_servers(&answered) == servers_.size(); });
        return of_servers(&said_yes) >= majority();
    }

    /// Effects: a majority has the greatest fence that was granted.
    void settle_fence()
    {
        long long greatest = 0;
        for (auto const& one : servers_) greatest = std::max(greatest, one.answer.value_or(0));
        auto const value = std::to_string(greatest);
        for (auto& to : servers_)
            if (said_yes(to) && *to.answer < greatest)
                send(to, what::confirms,
                     {"EVALSHA", redis::scripts::confirm.sha1, "2", key, fence, token_.view(), value, fence_lifetime,
                      bound_});
        fence_ = greatest;
        serve_until([&] {
            return of_servers([&](server const& s) { return s.answer.value_or(0) == greatest; }) >= majority();
        });
    }

    void leave(server& to, std::uint64_t waiter)
    {
        send(to, what::leaves,
             {"EVALSHA", give_back_.sha1, "3", key, queue, next, "", channel, waiter_text(waiter), "0"});
    }

    /// Effects: waits until all have called this waiter; when some have not, for as long as holdfast does.
    void wait_for_calls()
    {
        auto until = clock::now() + longest_wait;
        for (std::size_t known = 0; known < servers_.size();) {
            auto const calls = of_servers(&has_called);
            if (calls >= majority() && calls > known) {
                until = std::min(until, clock::now() + after_majority);
                after_minority_ = first_after_minority;
            } else if (calls > known) {
                until = std::min(until, clock::now() + after_minority_);
                after_minority_ = std::min(2 * after_minority_, longest_wait);
            }
            known = calls;
            if (known == servers_.size() || clock::now() >= until) return;
            serve(until);
        }
    }

    void begin_step()
    {
        ++step_;
        for (auto& one : servers_) {
            one.answer.reset();
            one.called = false;
        }
    }

    void send(server& to, what is, std::initializer_list<std::string_view> words)
    {
        to.ask.append(words);
        to.owed.push_back({.is = is, .step = step_, .waiter = waiter_});
    }

    template <class F>
    void serve_until(F const& done)
    {
        while (!done()) serve(clock::time_point::max());
    }

    /// Effects: sends what was appended, waits for something to read until then, and reads it.
    void serve(clock::time_point until)
    {
        std::vector<pollfd> polled;
        for (auto& one : servers_) {
            one.ask.flush();
            polled.push_back({.fd = one.ask.descriptor(), .events = POLLIN, .revents = 0});
            polled.push_back({.fd = one.hear.descriptor(), .events = POLLIN, .revents = 0});
        }
        bool const for_good = until == clock::time_point::max();
        auto const left = for_good ? 0 : std::max<std::int64_t>(0, (until - clock::now()).count());
        ::timespec const wait{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
        if (::ppoll(polled.data(), polled.size(), for_good ? nullptr : &wait, nullptr) < 0)
            throw std::runtime_error{"poll"};
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            auto& from = servers_[i];
            if (polled[2 * i].revents != 0) from.ask.read_each([&](redisReply const& r) { on_answer(from, r); });
            if (polled[2 * i + 1].revents != 0) from.hear.read_each([&](redisReply const& r) { on_message(from, r); });
        }
    }

    void on_answer(server& from, redisReply const& r)
    {
        // With a refusal may come the score of the last in line.
        bool const with_score = r.type == REDIS_REPLY_ARRAY && r.elements == 2;
        auto const& number = with_score ? *r.element[0] : r;
        if (number.type != REDIS_REPLY_INTEGER) throw std::runtime_error{"the bare queue: no number as an answer"};
        auto const to = from.owed.front();
        from.owed.pop_front();
        if (to.is == what::leaves) return;
        if (to.step == step_)
            from.answer = to.is == what::confirms && number.integer == 1 ? fence_ : number.integer;
        else if (to.is == what::takes && number.integer < 0)
            leave(from, to.waiter);  // its wait was over before
    }

    /// A call is "<reservation and number of the waiter> <key>".
    void on_message(server& from, redisReply const& r)
    {
        if (r.type != REDIS_REPLY_ARRAY || r.elements != 3 || r.element[2]->len < 5)
            throw std::runtime_error{"the bare queue: no call"};
        auto const waiter = std::strtoull(r.element[2]->str + 4, nullptr, 10);
        if (waits_ && waiter == waiter_)
            from.called = true;
        else
            leave(from, waiter);
    }

    [[nodiscard]] std::string waiter_text(std::uint64_t waiter) const
    {
        return inbox_ + "0032" + std::to_string(waiter);  // reserved for 50 ms
    }

    /// Returns: the time when this wait began, or, to one server, how long it has lasted.
    [[nodiscard]] std::string score_text() const
    {
        if (servers_.size() > 1) return std::to_string(score_);
        auto const waited = std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - entered_);
        return std::to_string(-1 - waited.count());
    }

    std::string inbox_;
    std::string ttl_;
    std::string bound_;
    std::string lead_;
    redis::script take_;
    std::vector<server> servers_;
    bare_token token_;
    std::uint64_t step_ = 0;
    std::uint64_t waiter_ = 0;
    bool waits_ = false;
    clock::time_point entered_{};
    std::int64_t score_ = 0;
    std::chrono::milliseconds after_minority_{};
    long long fence_ = 0;
};

}  // namespace holdfast::benchmark
