// SPDX-License-Identifier: MIT
#pragma once

#include "threads.hpp"

#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/semaphore_slot.hpp>
#include <holdfast/core/slot_source.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/outage.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/sim.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::test {

/// A lock of one object in a simulated process, and those of its threads that wait for it, in a line. It takes the
/// place of the shipped `wait_queue` and renewer, which have a thread of their own: below it are the shipped
/// operations, above it the shipped adapters. Nothing is handed on in the process: each is granted the lock by the
/// servers.
class process_queue : public std::enable_shared_from_this<process_queue> {
public:
    /// One that wants the lock.
    struct request {
        detail::patience limit;
        std::unique_ptr<detail::async_result> told;
        std::optional<std::stop_callback<std::function<void()>>> on_stop;
        sim::client::acquire_operation* asking = nullptr;
        bool ended = false;
    };

    process_queue(sim::client& of, std::string_view name, lock_options options)
        : client_{of},
          key_{std::make_shared<redis::lock_keys const>(std::string{name})},
          options_{std::make_shared<lock_options const>(std::move(options))}
    {
    }

    /// Effects: has it ended by `threads::end`. Called once.
    void listen()
    {
        threads::active()->at_end([weak = weak_from_this()] {
            if (auto const self = weak.lock()) self->cancel_all();
        });
    }

    [[nodiscard]] std::string const& name() const noexcept { return key_->name(); }

    [[nodiscard]] holdfast::lease lease() const { return lease_ ? holdfast::lease{lease_->hold()} : holdfast::lease{}; }

    void begin(detail::patience const& p, std::stop_token stop, std::unique_ptr<detail::async_result> told)
    {
        if (threads::ending()) throw detail::error_of(name(), {make_error_code(errc::unavailable), "all is over"});
        auto const r = std::make_shared<request>();
        r->limit = p;
        r->told = std::move(told);
        untold_.push_back(r);
        bool const busy = lease_ || releasing_ || !line_.empty();
        if (closed_) return end(r, std::make_error_code(std::errc::operation_canceled));
        if (p.once && busy) return end(r, make_error_code(errc::timed_out));
        line_.push_back(r);
        if (!p.once && p.deadline != boot_clock::time_point::max() && busy) {
            auto& host = client_.host();
            host.at(host.when(p.deadline), [self = shared_from_this(), r] {
                if (!r->ended && !r->asking) self->end(r, make_error_code(errc::timed_out));
            });
        }
        r->on_stop.emplace(std::move(stop), [this, weak = std::weak_ptr{r}] {
            if (auto const one = weak.lock()) cancel(one);
        });
        ask_next();
    }

    /// Effects: gives the lock back; then `done` is called with the result.
    void release(std::function<void(std::error_code)> done)
    {
        auto l = std::move(lease_);
        lease_ = nullptr;
        if (!l) return done(make_error_code(errc::not_owner));
        if (threads::ending()) return done(make_error_code(errc::unavailable));
        releasing_ = true;
        client_.keep(give_back(shared_from_this(), std::move(l), std::move(done)));
    }

    void close()
    {
        closed_ = true;
        for (auto const& one : std::vector(line_.begin(), line_.end())) cancel(one);
        release([](std::error_code) {});
    }

    [[nodiscard]] bool closed() const noexcept { return closed_; }

private:
    void ask_next()
    {
        if (lease_ || releasing_ || line_.empty() || line_.front()->asking) return;
        client_.keep(ask(shared_from_this(), line_.front()));
    }

    static sim::process ask(std::shared_ptr<process_queue> self, std::shared_ptr<request> r)
    {
        auto& host = self->client_.host();
        sim::call asking{host};
        sim::client::acquire_operation acquire{self->client_.way(), self->key_,
                                               detail::request_for(*self->options_, r->limit, 0, host.now())};
        r->asking = &acquire;
        acquire.start(asking);
        co_await asking.ended_by();
        r->asking = nullptr;
        auto const got = acquire.outcome();
        if (got) {
            self->lease_ = std::make_shared<sim::granted_lease>(self->client_, self->key_, self->options_, *got);
            self->client_.keep(sim::granted_lease::renew(self->lease_));
            if (self->closed_) self->release([](std::error_code) {});
        }
        auto const why = self->closed_ ? std::make_error_code(std::errc::operation_canceled) : got.code();
        self->end(r, got && !self->closed_ ? std::error_code{} : why);
    }

    static sim::process give_back(std::shared_ptr<process_queue> self, std::shared_ptr<sim::granted_lease> l,
                                  std::function<void(std::error_code)> done)
    {
        std::error_code ec;
        co_await sim::granted_lease::give_back(std::move(l), &ec);
        self->releasing_ = false;
        done(ec);
        self->ask_next();
    }

    void cancel(std::shared_ptr<request> const& r)
    {
        if (r->ended || threads::ending()) return;
        if (r->asking) return r->asking->cancel();
        end(r, std::make_error_code(std::errc::operation_canceled));
    }

    /// Effects: it is told by its process, as soon as that goes on.
    void end(std::shared_ptr<request> const& r, std::error_code ec)
    {
        r->ended = true;
        std::erase(line_, r);
        auto& host = client_.host();
        host.at(host.present(), [self = shared_from_this(), r, ec] {
            if (!std::erase(self->untold_, r)) return;
            r->on_stop.reset();
            r->told->deliver(ec, !ec);
        });
        ask_next();
    }

    void cancel_all()
    {
        line_.clear();
        for (auto const& r : std::exchange(untold_, {})) {
            r->ended = true;
            r->on_stop.reset();
            r->told->deliver(std::make_error_code(std::errc::operation_canceled), false);
        }
    }

    sim::client& client_;
    redis::shared_keys key_;
    std::shared_ptr<lock_options const> options_;
    std::shared_ptr<sim::granted_lease> lease_;
    std::deque<std::shared_ptr<request>> line_;
    std::vector<std::shared_ptr<request>> untold_;
    bool releasing_ = false;
    bool closed_ = false;
};

/// What a `mutex`, or a slot of a semaphore, calls in a simulated process. Its members that wait do so in virtual time.
class process_lock final : public detail::lock_object {
public:
    process_lock(sim::client& of, std::string_view name, lock_options options)
        : queue_{std::make_shared<process_queue>(of, name, std::move(options))}
    {
        queue_->listen();
    }
    ~process_lock() override { process_lock::close(); }

    bool lock(detail::patience const& p, std::stop_token const& stop) override
    {
        if (stop.stop_requested()) return false;
        auto const got = std::make_shared<answer::told>();
        got->to = threads::here();
        queue_->begin(p, stop, std::make_unique<answer>(got));
        while (!got->ended) threads::wait_until();
        if (got->held || got->code == errc::timed_out || got->code == std::errc::operation_canceled) return got->held;
        throw detail::error_of(name(), {got->code, {}});
    }

    void unlock() noexcept override
    {
        std::error_code ignored;
        unlock(ignored);
    }

    void unlock(std::error_code& ec) noexcept override
    {
        auto const got = std::make_shared<answer::told>();
        got->to = threads::here();
        queue_->release([got](std::error_code why) { got->tell(why, false); });
        while (!got->ended && !threads::ending()) threads::wait_until();
        ec = got->ended ? got->code : make_error_code(errc::unavailable);
    }

    bool extend(std::chrono::milliseconds, std::error_code& ec) override
    {
        ec = std::make_error_code(std::errc::operation_not_supported);  // no schedule extends a lease by itself
        return false;
    }
    void extend(std::chrono::milliseconds ttl) override
    {
        std::error_code ec;
        extend(ttl, ec);
        throw detail::error_of(name(), {ec, {}});
    }

    [[nodiscard]] holdfast::lease lease() const override { return queue_->lease(); }
    [[nodiscard]] std::string const& name() const noexcept override { return queue_->name(); }
    [[nodiscard]] std::string address() const override { return name() + '\0' + "the simulated servers"; }

    void begin_lock(detail::patience const& p, std::stop_token stop,
                    std::unique_ptr<detail::async_result> told) override
    {
        queue_->begin(p, std::move(stop), std::move(told));
    }

    void begin_unlock(holdfast::lease const& hold, std::unique_ptr<detail::async_result> told) override
    {
        if (!(hold == lease())) return told->deliver(make_error_code(errc::not_owner), false);
        queue_->release([one = std::shared_ptr{std::move(told)}](std::error_code ec) { one->deliver(ec, false); });
    }

    void give_back(holdfast::lease const& hold) noexcept override
    {
        if (hold == lease()) queue_->release([](std::error_code) {});
    }

    void close() noexcept override { queue_->close(); }
    [[nodiscard]] bool closed() const noexcept override { return queue_->closed(); }

private:
    /// Wakes the thread that waits for the result.
    class answer final : public detail::async_result {
    public:
        struct told {
            threads::one* to = nullptr;
            bool ended = false;
            bool held = false;
            std::error_code code;

            void tell(std::error_code ec, bool is_held)
            {
                ended = true;
                held = is_held;
                code = ec;
                if (to) to->wake();
            }
        };

        explicit answer(std::shared_ptr<told> to) : to_{std::move(to)} {}
        void deliver(std::error_code ec, bool held) noexcept override { to_->tell(ec, held); }
        [[nodiscard]] bool runs_user_code() const noexcept override { return false; }

    private:
        std::shared_ptr<told> to_;
    };

    std::shared_ptr<process_queue> const queue_;
};

/// The shipped `mutex` in a simulated process.
class process_mutex final : public mutex {
public:
    using threads = process_threads;

    process_mutex(sim::client& of, std::string_view name, lock_options options)
        : mutex{std::make_unique<process_lock>(of, name, std::move(options))}
    {
    }
};

/// The slots of a semaphore in a simulated process. The simulated servers do not know how many there are.
class process_slots final : public detail::slot_source {
public:
    process_slots(sim::client& of, std::string_view semaphore, lock_options const& options)
        : client_{of}, name_{semaphore}, options_{options}
    {
    }

    [[nodiscard]] std::unique_ptr<detail::lock_object> make_slot(std::size_t slot) override
    {
        return std::make_unique<process_lock>(client_, semaphore_slot{name_, 1, slot}.lock_name(), options_);
    }
    [[nodiscard]] std::unique_ptr<detail::lock_object> make_turn() override
    {
        return std::make_unique<process_lock>(client_, name_ + "#batch", options_);
    }
    [[nodiscard]] std::size_t held() override { throw detail::no_operators(); }

private:
    sim::client& client_;
    std::string const name_;
    lock_options const options_;
};

/// The shipped `semaphore` in a simulated process.
class process_semaphore final : public semaphore {
public:
    process_semaphore(sim::client& of, std::string_view name, std::ptrdiff_t max, lock_options const& options)
        : semaphore{name, max, options, [&](semaphore_slot const& slots) {
                        return std::make_unique<process_slots>(of, slots.semaphore, options);
                    }}
    {
    }
};

}  // namespace holdfast::test
