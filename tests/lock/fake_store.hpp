// SPDX-License-Identifier: MIT
//
// A store of a test, whose operations end in `start`, or when the test says so.
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/lock/client_context.hpp>

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {

/// One operation that was started. Thread-safe.
template <class R>
class fake_call {
public:
    /// Effects: the operation ends with `r`; `complete()` is called by this thread. No effect if it has ended.
    void answer(R r)
    {
        completion* done = nullptr;
        {
            std::scoped_lock const guard{mutex_};
            if (outcome_) return;
            outcome_.emplace(std::move(r));
            answered_at = boot_clock::now();
            done = done_;
        }
        done->complete();
    }

    [[nodiscard]] std::optional<R> outcome() const
    {
        std::scoped_lock const guard{mutex_};
        return outcome_;
    }

    std::string name;
    owner_token token;                ///< but for an acquire
    std::chrono::milliseconds ttl{};  ///< but for a release
    std::optional<acquire_request> request;
    std::atomic<bool> canceled{false};
    std::atomic<boot_clock::time_point> begun{boot_clock::time_point{}};
    std::atomic<boot_clock::time_point> answered_at{boot_clock::time_point{}};

    /// Effects: the operation begins.
    void begin(completion& done)
    {
        std::scoped_lock const guard{mutex_};
        done_ = &done;
        begun = boot_clock::now();
    }

private:
    std::mutex mutable mutex_;
    completion* done_ = nullptr;
    std::optional<R> outcome_;
};

/// The calls of one kind, in the order in which they were started.
template <class R>
class fake_calls {
public:
    using call = fake_call<R>;

    fake_calls() { all_.reserve(4096); }  // adding one needs no memory

    /// Whether they are answered in `start`, as if all had gone well; otherwise when the test does so.
    std::atomic<bool> answered_at_once{true};

    [[nodiscard]] std::size_t size() const
    {
        std::scoped_lock const guard{mutex_};
        return all_.size();
    }

    [[nodiscard]] std::shared_ptr<call> at(std::size_t n) const
    {
        std::scoped_lock const guard{mutex_};
        return all_.at(n);
    }
    [[nodiscard]] std::shared_ptr<call> last() const
    {
        std::scoped_lock const guard{mutex_};
        return all_.back();
    }

    void add(std::shared_ptr<call> one)
    {
        std::scoped_lock const guard{mutex_};
        all_.push_back(std::move(one));
    }

private:
    std::mutex mutable mutex_;
    std::vector<std::shared_ptr<call>> all_;
};

class fake_store final : public lock_store {
public:
    fake_calls<result<grant>> acquires;
    fake_calls<result<boot_clock::time_point>> extends;
    fake_calls<failure> releases;

    std::atomic<bool> others_wait{false};    ///< releases say so
    std::atomic<int> unavailable{-1};        ///< acquires that have not ended say so, or do not; below 0: do not know
    std::atomic<bool> cannot_extend{false};  ///< there is no memory for it
    std::atomic<int> releases_made{0};       ///< and not lent
    std::atomic<bool> mutable ends_lease{
        false};  ///< the next lease that is asked about has ended; an extension does not find it
    std::atomic<bool> cancel_ends{true};    ///< what is canceled ends in `cancel`; otherwise when it is answered
    std::atomic<bool> serves{false};        ///< it wants to be served
    std::atomic<int> served{0};             ///< how often it was served
    std::atomic<bool> keeps_server{false};  ///< who serves it does not return
    std::atomic<int> unfinished{0};         ///< how often it has to be called before nothing is left to finish
    std::atomic<int> finished{0};           ///< how often it was called for that
    std::atomic<int> broken{0};             ///< how often what `operation` says was not kept to
    std::atomic<bool> start_throws{false};  ///< no acquire can be started
    std::function<void()> when_started{};   ///< called in the start of an acquire
    std::function<void()> when_asked{};     ///< called when the outcome of an acquire has been made

    /// Returns: what an acquire is granted.
    [[nodiscard]] grant granted(acquire_request const& r)
    {
        auto const first = fence_.fetch_add(r.fences);
        return {.token = owner_token::fresh(),
                .valid_until = valid_until(boot_clock::now(), r.ttl),
                .fence = r.fences == 0 ? 0 : first,
                .fences = r.fences};
    }

    /// Effects: the `n`th acquire ends.
    void grant_to(std::size_t n)
    {
        auto const one = acquires.at(n);
        one->answer(granted(*one->request));
    }
    void refuse(std::size_t n, std::error_code why) { acquires.at(n)->answer(why); }

    /// Effects: answers what was started, and what will be.
    template <class R, class Answer>
    static void answer_all(fake_calls<R>& calls, Answer&& how)
    {
        calls.answered_at_once = true;
        for (std::size_t n = 0; n < calls.size(); ++n) calls.at(n)->answer(how(*calls.at(n)));
    }
    void answer_releases()
    {
        answer_all(releases, [](auto const&) { return failure{}; });
    }
    void answer_extends()
    {
        answer_all(extends, [](auto const& one) { return valid_until(boot_clock::now(), one.ttl); });
    }

    /// Effects: leases may have ended.
    void alarm() const { alarm_(); }

    [[nodiscard]] shared_key make_key(std::string_view name) const override
    {
        return std::make_shared<lock_key const>(std::string{name});
    }
    void on_loss(std::function<void()> f) override { alarm_ = std::move(f); }
    [[nodiscard]] bool still_leased(owner_token const&) const override { return !ends_lease.exchange(false); }

    bool serve(int alarm) override
    {
        if (!serves) return false;
        ++served;
        pollfd one{.fd = alarm, .events = POLLIN, .revents = 0};
        ::poll(&one, 1, -1);
        while (keeps_server) std::this_thread::sleep_for(std::chrono::milliseconds{1});
        return true;
    }

    bool finish() noexcept override
    {
        ++finished;
        return unfinished != 0 && --unfinished != 0;
    }

    [[nodiscard]] std::unique_ptr<pending_acquire> acquire(shared_key const& key,
                                                           acquire_request const& request) override
    {
        auto made = std::make_unique<acquire_operation>(*this, key);
        made->call->ttl = request.ttl;
        made->call->request = request;
        return made;
    }
    [[nodiscard]] std::unique_ptr<pending_extend> extend(shared_key const& key, owner_token const& token,
                                                         std::chrono::milliseconds ttl) override
    {
        auto made = std::make_unique<extend_operation>(*this, key);
        made->call->token = token;
        made->call->ttl = ttl;
        return made;
    }
    [[nodiscard]] std::unique_ptr<pending_release> release(shared_key const& key) override
    {
        ++releases_made;
        return std::make_unique<release_operation>(*this, key);
    }
    void lend_release(shared_key const& key, release_user& to) noexcept override
    {
        release_operation one{*this, key};
        to.use(one);
    }

private:
    /// What all operations have in common.
    template <class Base, class R>
    struct fake_operation : Base {
        fake_operation(fake_store& s, shared_key const& key) : store{s}, call{std::make_shared<fake_call<R>>()}
        {
            call->name = key->name();
        }
        ~fake_operation() override
        {
            if (started && !call->outcome()) ++store.broken;
        }

        void begin(completion& done, fake_calls<R>& to)
        {
            if (std::exchange(started, true)) ++store.broken;
            call->begin(done);
            to.add(call);
        }

        [[nodiscard]] R outcome() const override
        {
            auto const got = call->outcome();
            if (!got) ++store.broken;
            return *got;
        }

        fake_store& store;
        std::shared_ptr<fake_call<R>> call;
        bool started = false;
    };

    struct acquire_operation final : fake_operation<pending_acquire, result<grant>> {
        using fake_operation::fake_operation;

        void start(completion& done) override
        {
            if (store.start_throws) throw error{errc::misconfigured, "the store does not start"};
            auto const mine = call;  // this may be gone when it was answered
            auto& of = store;
            begin(done, of.acquires);
            if (of.when_started) of.when_started();
            if (of.acquires.answered_at_once) mine->answer(of.granted(*mine->request));
        }
        void cancel() noexcept override
        {
            auto const mine = call;
            mine->canceled = true;
            if (store.cancel_ends) mine->answer(std::make_error_code(std::errc::operation_canceled));
        }
        [[nodiscard]] result<grant> outcome() const override
        {
            auto got = fake_operation::outcome();
            if (store.when_asked) store.when_asked();
            return got;
        }
        [[nodiscard]] std::optional<bool> unavailable() const noexcept override
        {
            auto const known = store.unavailable.load();
            return known < 0 ? std::nullopt : std::optional{known != 0};
        }
    };

    struct extend_operation final : fake_operation<pending_extend, result<boot_clock::time_point>> {
        using fake_operation::fake_operation;

        void start(completion& done) override
        {
            auto const mine = call;
            auto& of = store;
            if (of.cannot_extend) throw std::bad_alloc{};
            auto const sent = boot_clock::now();
            begin(done, of.extends);
            if (of.ends_lease) return mine->answer(errc::lease_lost);
            if (of.extends.answered_at_once) mine->answer(valid_until(sent, mine->ttl));
        }
        void cancel() noexcept override
        {
            auto const mine = call;
            mine->canceled = true;
            if (store.cancel_ends) mine->answer(std::make_error_code(std::errc::operation_canceled));
        }
    };

    struct release_operation final : fake_operation<pending_release, failure> {
        using fake_operation::fake_operation;

        void bind(owner_token const& token) noexcept override { call->token = token; }
        void start(completion& done) override
        {
            auto const mine = call;
            auto& of = store;
            begin(done, of.releases);
            if (of.releases.answered_at_once) mine->answer({});
        }
        void cancel() noexcept override {}
        [[nodiscard]] bool others_wait() const noexcept override { return store.others_wait; }
    };

    std::function<void()> alarm_;
    std::atomic<std::uint64_t> fence_{1};
};

/// A client of a `fake_store`.
struct fake_client {
    std::shared_ptr<fake_store> store = std::make_shared<fake_store>();
    holdfast::store locks{std::make_shared<holdfast::detail::client_context>(store)};
};

}  // namespace holdfast::test
