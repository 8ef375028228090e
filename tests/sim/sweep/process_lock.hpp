// SPDX-License-Identifier: MIT
#pragma once

#include "lock_site.hpp"
#include "threads.hpp"

#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/semaphore_slot.hpp>
#include <holdfast/core/slot_source.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/joint_locks.hpp>
#include <holdfast/lock/outage.hpp>
#include <holdfast/lock/slot_semaphore.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/redis/joint_operation.hpp>
#include <holdfast/redis/operator_questions.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/sim.hpp>

#include <algorithm>
#include <atomic>
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
/// servers. `Client` is a `sim::client`, or has the same members.
template <class Client>
class basic_process_queue : public std::enable_shared_from_this<basic_process_queue<Client>> {
    using acquire_operation = typename Client::acquire_operation;
    using granted_lease = sim::basic_granted_lease<Client>;
    using keys = typename Client::key;

public:
    /// One that wants the lock.
    struct request {
        detail::patience limit;
        std::unique_ptr<detail::async_result> told;
        std::optional<std::stop_callback<std::function<void()>>> on_stop;
        acquire_operation* asking = nullptr;
        bool ended = false;
    };

    basic_process_queue(Client& of, keys key, lock_options options)
        : client_{of}, key_{std::move(key)}, options_{std::make_shared<lock_options const>(std::move(options))}
    {
    }

    /// Effects: has it ended by `threads::end`. Called once.
    void listen()
    {
        threads::active()->at_end([weak = this->weak_from_this()] {
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
        bool const busy = lease_ || releasing_ || joining_ || !line_.empty();
        if (closed_) return end(r, std::make_error_code(std::errc::operation_canceled));
        if (p.once && busy) return end(r, make_error_code(errc::timed_out));
        line_.push_back(r);
        if (!p.once && p.deadline != boot_clock::time_point::max() && busy) {
            auto& host = client_.host();
            host.at(host.when(p.deadline), [self = this->shared_from_this(), r] {
                if (!r->ended && !r->asking) self->end(r, make_error_code(errc::timed_out));
            });
        }
        r->on_stop.emplace(std::move(stop), [this, weak = std::weak_ptr{r}] {
            if (auto const one = weak.lock()) cancel(one);
        });
        ask_next();
    }

    /// Effects: a user is told of the hold: a `min_hold` is for it.
    void begin_use() noexcept { in_use_ = true; }

    /// Effects: gives the lock back, when its `min_hold` is over; then, or when it is kept, `done` is called with the
    /// result.
    void release(std::function<void(std::error_code)> done)
    {
        auto l = std::move(lease_);
        lease_ = nullptr;
        if (!l) return done(make_error_code(errc::not_owner));
        if (threads::ending()) return done(make_error_code(errc::unavailable));
        releasing_ = true;
        released_ = std::move(done);
        auto& host = client_.host();
        auto const until = l->hold()->since() + options_->min_hold;
        if (!in_use_ || !l->hold()->still_held() || until <= host.now())
            return client_.keep(give_back(this->shared_from_this(), std::move(l)));
        host.at(host.when(until), [self = this->shared_from_this(), l] { self->client_.keep(give_back(self, l)); });
        tell_released({});
    }

    void close()
    {
        closed_ = true;
        for (auto const& one : std::vector(line_.begin(), line_.end())) cancel(one);
        release([](std::error_code) {});
    }

    [[nodiscard]] bool closed() const noexcept { return closed_; }

    [[nodiscard]] Client& client() const noexcept { return client_; }
    [[nodiscard]] keys const& key() const noexcept { return key_; }
    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept { return options_->ttl; }

    /// Returns: whether the lock can be asked for together with others; then it is, until `end_joining`.
    [[nodiscard]] bool begin_joining() noexcept
    {
        if (lease_ || releasing_ || joining_ || closed_ || !line_.empty()) return false;
        joining_ = true;
        return true;
    }

    /// Returns: what is asked for together with others.
    [[nodiscard]] acquire_claim claim() const
    {
        return {key_, detail::request_for(*options_, {.once = true}, 0, client_.host().now())};
    }

    /// Effects: the lock was granted, or not.
    void end_joining(std::optional<grant> const& got)
    {
        joining_ = false;
        if (got) take(*got, true);
        ask_next();
    }

private:
    void take(grant const& got, bool in_use)
    {
        in_use_ = in_use;
        auto const& host = client_.host();
        host.world().note("HAS THE LOCK, fence", host.index(), sim::event::nobody, got.fence);
        lease_ = std::make_shared<granted_lease>(client_, key_, options_, got);
        client_.keep(granted_lease::renew(lease_));
        if (closed_) release([](std::error_code) {});
    }

    void ask_next()
    {
        if (lease_ || releasing_ || joining_ || line_.empty() || line_.front()->asking) return;
        client_.keep(ask(this->shared_from_this(), line_.front()));
    }

    static sim::process ask(std::shared_ptr<basic_process_queue> self, std::shared_ptr<request> r)
    {
        auto& host = self->client_.host();
        sim::call asking{host};
        acquire_operation acquire{self->client_.way(), self->key_,
                                  detail::request_for(*self->options_, r->limit, 0, host.now())};
        r->asking = &acquire;
        acquire.start(asking);
        co_await asking.ended_by();
        r->asking = nullptr;
        auto const got = acquire.outcome();
        if (got) self->take(*got, !r->limit.told_later);
        auto const why = self->closed_ ? std::make_error_code(std::errc::operation_canceled) : got.code();
        self->end(r, got && !self->closed_ ? std::error_code{} : why);
    }

    static sim::process give_back(std::shared_ptr<basic_process_queue> self, std::shared_ptr<granted_lease> l)
    {
        std::error_code ec;
        co_await granted_lease::give_back(std::move(l), &ec);
        self->releasing_ = false;
        self->tell_released(ec);
        self->ask_next();
    }

    /// Effects: the caller of `release` is told, once.
    void tell_released(std::error_code ec)
    {
        if (auto const done = std::exchange(released_, nullptr)) done(ec);
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
        host.at(host.present(), [self = this->shared_from_this(), r, ec] {
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
        tell_released(make_error_code(errc::unavailable));  // as each does after its operation timeout
    }

    Client& client_;
    keys key_;
    std::shared_ptr<lock_options const> options_;
    std::shared_ptr<granted_lease> lease_;
    std::deque<std::shared_ptr<request>> line_;
    std::vector<std::shared_ptr<request>> untold_;
    std::function<void(std::error_code)> released_;  // is told the result of the release that is under way
    bool releasing_ = false;
    bool joining_ = false;
    bool closed_ = false;
    bool in_use_ = false;  // a user knows of the hold
};

/// An operation of a simulated process that one of its threads waits for.
class thread_waits final : public completion {
public:
    void complete() noexcept override
    {
        ended_ = true;
        if (to_) to_->wake();
    }

    /// Effects: starts `one`, and waits for it. Returns: whether it has ended; otherwise the schedule has, and `one` is
    /// cancelled.
    [[nodiscard]] bool run(auto& one)
    {
        one.start(*this);
        while (!ended_ && !threads::ending()) threads::wait_until();
        bool const ended = ended_;
        if (!ended) one.cancel();
        return ended;
    }

    /// Returns: what `one` yields. Throws: `error`.
    [[nodiscard]] static auto result_of(auto& one, std::string const& lock)
    {
        thread_waits me;
        if (!me.run(one)) throw detail::error_of(lock, {make_error_code(errc::unavailable), "all is over"});
        auto got = one.outcome();
        if (!got) throw detail::error_of(lock, got.why());
        return *got;
    }

private:
    threads::one* const to_ = threads::here();
    bool ended_ = false;
};

/// Returns: the key of the lock of that name.
[[nodiscard]] inline redis::shared_keys key_of_lock(sim::client const& /*of*/, std::string_view name)
{
    return std::make_shared<redis::lock_keys const>(std::string{name});
}

/// What a `mutex`, or a slot of a semaphore, calls in a simulated process. Its members that wait do so in virtual time.
template <class Client>
class basic_process_lock : public detail::lock_object {
public:
    basic_process_lock(Client& of, typename Client::key key, lock_options options)
        : queue_{std::make_shared<queue_of_threads>(of, std::move(key), std::move(options))}
    {
        queue_->listen();
    }
    basic_process_lock(Client& of, std::string_view name, lock_options options)
        : basic_process_lock{of, key_of_lock(of, name), std::move(options)}
    {
    }
    ~basic_process_lock() override { basic_process_lock::close(); }

    bool lock(detail::patience const& p, std::stop_token const& stop) override
    {
        if (stop.stop_requested()) return false;
        auto const got = std::make_shared<typename answer::told>();
        got->to = threads::here();
        queue_->begin(p, stop, std::make_unique<answer>(got));
        while (!got->ended) threads::wait_until();
        if (got->held || got->code == errc::timed_out || got->code == std::errc::operation_canceled) return got->held;
        throw detail::error_of(name(), {got->code, {}});
    }

    [[nodiscard]] std::shared_ptr<detail::joint_object>
    make_joint(std::vector<std::shared_ptr<detail::lock_object>> all, std::string const& name) override
    {
        return std::make_shared<detail::joint_locks>(std::move(all), name);
    }

    void unlock() noexcept override
    {
        std::error_code ignored;
        unlock(ignored);
    }

    void unlock(std::error_code& ec) noexcept override
    {
        auto const got = std::make_shared<typename answer::told>();
        got->to = threads::here();
        queue_->release([got](std::error_code why) { got->tell(why, false); });
        while (!got->ended) threads::wait_until();
        ec = got->code;
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

    void begin_use() noexcept override { queue_->begin_use(); }
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

protected:
    using queue_of_threads = basic_process_queue<Client>;
    std::shared_ptr<queue_of_threads> const queue_;  // NOLINT(*-non-private-member-variables-in-classes)
};

/// The same over Redis, with what only Redis has.
class process_lock final : public basic_process_lock<sim::client> {
public:
    using basic_process_lock::basic_process_lock;

    /// By one request, if there is one server.
    detail::joint_outcome try_lock_all(std::vector<lock_object*> const& all, detail::patience const& p,
                                       std::stop_token const& stop) override
    {
        auto& client = queue_->client();
        if (client.way().size() != 1 || threads::ending()) return {};
        std::vector<std::shared_ptr<queue_of_threads>> queues;
        auto const end = [&](auto const& got) {
            for (std::size_t i = 0; i < queues.size(); ++i) queues[i]->end_joining(got(i));
        };
        auto const none = [](std::size_t) { return std::optional<grant>{}; };
        auto const refused_by = [&](std::size_t blocker) -> detail::joint_outcome {
            if (!p.once && boot_clock::now() < p.deadline) return {};
            return {detail::joint_outcome::kind::refused, blocker};
        };
        std::vector<acquire_claim> claims;
        for (auto* const one : all) {
            auto const& queue = static_cast<process_lock*>(one)->queue_;
            if (!queue->begin_joining()) {
                end(none);
                return refused_by(queues.size());
            }
            queues.push_back(queue);
            claims.push_back(queue->claim());
        }
        redis::joint_operation asking{client.way(), claims};
        thread_waits told;
        bool ended = false;
        {
            std::stop_callback const on_stop{stop, [&]() noexcept { asking.cancel(); }};
            ended = told.run(asking);
        }
        auto const why = ended ? asking.outcome().code : make_error_code(errc::unavailable);
        if (!why) {
            end([&](std::size_t i) { return std::optional{asking.granted(i)}; });
            return {detail::joint_outcome::kind::held, 0};
        }
        end(none);
        if (why != errc::timed_out) return {};
        return refused_by(asking.blocker());
    }

    [[nodiscard]] lock_report inspect() override { return ask<lock_report, redis::inspect_operation>(); }
    bool force_release() override { return ask<bool, redis::force_release_operation>(); }
    bool request_release() override { return ask<bool, redis::request_release_operation>(); }

    /// Effects: the number of permits in use is that of this slot.
    void resize()
    {
        redis::resize_operation asking{queue_->client().way(), queue_->key(), queue_->ttl()};
        static_cast<void>(thread_waits::result_of(asking, name()));
    }

private:
    template <class R, class Operation>
    [[nodiscard]] R ask() const
    {
        Operation asking{queue_->client().way(), queue_->key()};
        return thread_waits::result_of(asking, name());
    }
};

/// The shipped `mutex` in a simulated process.
class process_mutex final : public mutex {
public:
    using threads = process_threads;

    process_mutex(sim::client& of, std::string_view name, lock_options options)
        : mutex{std::make_shared<process_lock>(of, name, std::move(options))}
    {
    }
    process_mutex(lock_client& of, std::string_view name, lock_options options)
        : mutex{of.make_lock(name, std::move(options))}
    {
    }
};

/// What a `store` of a simulated process has: mutexes.
class process_locks final : public detail::lock_factory {
public:
    explicit process_locks(sim::client& of) : client_{of} {}

    [[nodiscard]] std::shared_ptr<detail::lock_object> make_mutex(std::string_view name, lock_options options) override
    {
        return std::make_shared<process_lock>(client_, name, std::move(options));
    }
    [[nodiscard]] detail::shared_sides make_shared_mutex(std::string_view /*name*/,
                                                         lock_options const& /*options*/) override
    {
        throw error{errc::misconfigured, "there are mutexes only"};
    }
    [[nodiscard]] std::shared_ptr<detail::semaphore_object>
    make_semaphore(std::string_view /*name*/, std::ptrdiff_t /*max*/, lock_options const& /*options*/) override
    {
        throw error{errc::misconfigured, "there are mutexes only"};
    }
    [[nodiscard]] lock_stats stats() const override { return {}; }
    void observe(lock_observer /*f*/) override {}
    [[nodiscard]] lock_report inspect(std::string_view /*name*/, report_of /*what*/) override
    {
        throw detail::no_operators();
    }
    bool force_release(std::string_view /*name*/) override { throw detail::no_operators(); }
    bool request_release(std::string_view /*name*/) override { throw detail::no_operators(); }
    [[nodiscard]] std::vector<std::string> list(std::string_view /*prefix*/) override { throw detail::no_operators(); }

private:
    sim::client& client_;
};

/// The slots of a semaphore in a simulated process.
class process_slots final : public detail::slot_source {
public:
    process_slots(sim::client& of, semaphore_slot const& slots, lock_options const& options)
        : client_{of}, name_{slots.semaphore}, permits_{slots.permits}, options_{options}
    {
    }

    [[nodiscard]] std::shared_ptr<detail::lock_object> make_slot(std::size_t slot) override
    {
        return std::make_shared<process_lock>(client_, key_of(slot), options_);
    }
    [[nodiscard]] std::shared_ptr<detail::lock_object> make_turn() override
    {
        return std::make_shared<process_lock>(client_, name_ + "#batch", options_);
    }
    [[nodiscard]] std::size_t held() override { throw detail::no_operators(); }
    void resize() override { process_lock{client_, key_of(0), options_}.resize(); }

private:
    [[nodiscard]] redis::shared_keys key_of(std::size_t slot) const
    {
        return std::make_shared<redis::lock_keys const>(semaphore_slot{name_, 1, slot}.lock_name(), "", access::sole,
                                                        redis::layout::string, permits_);
    }

    sim::client& client_;
    std::string const name_;
    std::size_t const permits_;
    lock_options const options_;
};

/// The shipped `semaphore` in a simulated process.
class process_semaphore final : public semaphore {
public:
    process_semaphore(sim::client& of, std::string_view name, std::ptrdiff_t max, lock_options const& options)
        : semaphore{std::make_shared<detail::slot_semaphore>(name, max,
                                                             [&of, options](semaphore_slot const& slots) {
                                                                 return std::make_unique<process_slots>(of, slots,
                                                                                                        options);
                                                             }),
                    options}
    {
    }
};

}  // namespace holdfast::test
