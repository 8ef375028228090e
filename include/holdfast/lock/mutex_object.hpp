// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/announcer.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/joint_object.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock_key.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/async_call.hpp>
#include <holdfast/lock/inspection.hpp>
#include <holdfast/lock/joint_call.hpp>
#include <holdfast/lock/joint_locks.hpp>
#include <holdfast/lock/lock_call.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/queue_table.hpp>
#include <holdfast/lock/report.hpp>
#include <holdfast/lock/several_locks.hpp>
#include <holdfast/lock/wait_queue.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Implements one `mutex`. All objects of one name and client share a queue, which is made when it is first needed: a
/// program may have many locks of which it takes few.
class mutex_object final : public lock_object {
public:
    mutex_object(std::shared_ptr<queue_table> queues, shared_key key, std::shared_ptr<void const> client,
                 std::shared_ptr<lock_options const> options)
        : queues_{std::move(queues)}, key_{std::move(key)}
    {
        state_->client = std::move(client);
        state_->options = std::move(options);
    }

    ~mutex_object() override { mutex_object::close(); }

    void close() noexcept override
    {
        if (in_child()) return;
        std::shared_ptr<void const> client;  // last: it may end then
        std::unique_lock<std::mutex> none_yet;
        auto const queue = made(none_yet);
        client = queue ? queue->abandon(*state_) : std::move(state_->client);
        if (queue && queue->hold_of(*state_)) mutex_object::unlock();
    }

    [[nodiscard]] bool closed() const noexcept override
    {
        if (in_child()) return false;
        std::unique_lock<std::mutex> none_yet;
        auto const queue = made(none_yet);
        return queue ? queue->destroyed(*state_) : !state_->client;
    }

    bool lock(patience const& p, std::stop_token const& stop) override
    {
        if (stop.stop_requested()) return false;
        prepare(std::make_error_code(std::errc::operation_canceled));
        auto& thread = several_locks::of_this_thread();
        if (auto const rest = p.once ? boot_clock::duration{} : thread.rest(); rest.count() > 0)
            std::this_thread::sleep_for(std::min(rest, p.deadline - boot_clock::now()));
        auto const why = lock_call{*queue_, *state_, p}.run(stop);
        auto const& hook = state_->options->on_error;
        report_servers(store(), hook);
        if (!why) {
            note_grant();
            return true;
        }
        if (p.once && why->code == errc::timed_out && thread.refused(queue_.get(), this))
            report(hook, name(),
                   {make_error_code(errc::misconfigured),
                    "two lock objects of this name are taken together, by std::scoped_lock or std::lock; they are one "
                    "lock, so that never succeeds: take one of them"});
        bool const canceled = why->code == std::errc::operation_canceled && stop.stop_requested();
        if (p.why_not) *p.why_not = *why;
        if (why->code == errc::timed_out || canceled) return false;
        throw error_of(name(), *why);
    }

    [[nodiscard]] std::chrono::milliseconds unavailable_after() const noexcept override
    {
        return state_->options->unavailable_after;
    }

    joint_outcome try_lock_all(std::vector<lock_object*> const& all, patience const& p,
                               std::stop_token const& stop) override
    {
        auto& in = store();
        for (auto const* const one : all)
            if (one->client() != &in || !in.joins(*static_cast<mutex_object const&>(*one).key_)) return {};
        joint_call call{in};
        for (auto* const one : all) {
            auto& same = static_cast<mutex_object&>(*one);
            same.prepare(std::make_error_code(std::errc::operation_canceled));
            call.add(*same.queue_, *same.state_);
        }
        failure why;
        auto const got = call.run(stop, why);
        report_servers(in, state_->options->on_error);
        bool const last = p.once || boot_clock::now() >= p.deadline;
        if (got.what == joint_outcome::kind::refused && !last) return {};
        if (p.why_not) *p.why_not = why;
        bool const unavailable = why.code == errc::unavailable && last;
        if (unavailable || got.what == joint_outcome::kind::refused) call.tell_failed(got.blocker);
        if (unavailable) throw error_of(all[got.blocker]->name(), why);
        if (got.what == joint_outcome::kind::held)
            for (auto const* const one : all) static_cast<mutex_object const&>(*one).note_grant();
        return got;
    }

    void unlock() noexcept override
    {
        auto const queue = made();
        auto const options = state_->options;
        auto const why = release(queue);  // the next holder may destroy this, unless there is no queue
        if (!why.code) return;
        auto& reports = queue ? queue->reports() : queues_->client().reports;
        reports.unlock_failed(options->on_error, queue ? queue->name() : name(), why);
    }

    void tell_unlock_failed(failure const& why) noexcept override
    {
        queues_->client().reports.unlock_failed(state_->options->on_error, name(), why);
    }

    void unlock(std::error_code& ec) noexcept override { ec = release(made()).code; }

    bool extend(std::chrono::milliseconds ttl, std::error_code& ec) override
    try {
        auto const queue = made();
        ec = make_error_code(errc::not_owner);
        if (in_child()) return false;  // checked first: in a child, mutexes may be locked for ever
        if (!refused(ttl).empty())
            ec = make_error_code(errc::misconfigured);
        else if (queue)
            ec = queue->extend(*state_, ttl);
        return !ec;
    } catch (std::bad_alloc const&) {  // nothing was asked; the lease runs on, for `ttl` at most
        ec = std::make_error_code(std::errc::not_enough_memory);
        return false;
    }

    void extend(std::chrono::milliseconds ttl) override
    {
        auto const key = key_;
        auto why = refused(ttl);
        std::error_code ec;
        if (extend(ttl, ec)) return;
        if (!why.empty()) why.insert(0, ", ");
        throw error_of(key->name(), {ec, "extend to " + std::to_string(ttl.count()) + " ms" + why});
    }

    [[nodiscard]] holdfast::lease lease() const override
    {
        auto const queue = made();
        return queue ? holdfast::lease{queue->hold_of(*state_)} : holdfast::lease{};
    }
    [[nodiscard]] std::string const& name() const noexcept override { return key_->name(); }

    [[nodiscard]] void const* client() const noexcept override { return &store(); }
    [[nodiscard]] announcer* calls() noexcept override
    {
        return in_child() ? nullptr : &queues_->client().renews->calls;
    }
    [[nodiscard]] std::string address() const override { return store().address_of(*key_); }

    [[nodiscard]] std::shared_ptr<joint_object> make_joint(std::vector<std::shared_ptr<lock_object>> all,
                                                           std::string const& name) override
    {
        return std::make_shared<joint_locks>(std::move(all), name);
    }

    [[nodiscard]] std::optional<owner_token> held_token() const override
    {
        auto const queue = made();
        return queue ? queue->token_of(*state_) : std::nullopt;
    }
    [[nodiscard]] lock_report inspect() override { return operators().inspect(key_, report_of::holder); }
    bool force_release() override { return operators().force_release(key_); }
    bool request_release() override { return operators().request_release(key_); }

    void begin_lock(patience const& p, std::stop_token stop, std::unique_ptr<async_result> told) override
    {
        prepare(std::make_error_code(std::errc::operation_canceled));
        std::make_shared<async_lock_call>(queue_, state_, p, std::move(told))->begin(std::move(stop));
    }

    void begin_unlock(holdfast::lease const& hold, std::unique_ptr<async_result> told) override
    {
        prepare(make_error_code(errc::not_owner));
        several_locks::of_this_thread().gave_back(queue_.get());
        std::make_shared<async_unlock_call>(queue_, std::move(told))->begin(*state_, hold);
    }

    void give_back(holdfast::lease const& hold) noexcept override
    {
        auto const queue = made();
        if (!queue) return;
        auto const options = state_->options;
        auto const why = queue->release_hold(*state_, hold);
        if (!why.code) return;
        queue->reports().unlock_failed(hook_of(calls(), options), queue->name(), why);
    }

    void begin_use() noexcept override
    {
        if (auto const queue = made()) queue->begin_use(*state_);
    }

private:
    [[nodiscard]] bool in_child() const noexcept { return queues_->client().origin.in_child(); }
    [[nodiscard]] lock_store& store() const noexcept { return *queues_->client().store; }

    /// Returns: the queue; null if none was needed so far.
    [[nodiscard]] std::shared_ptr<wait_queue> made() const noexcept
    {
        return made_.load(std::memory_order_acquire) ? queue_ : nullptr;
    }

    /// Returns: the same; while it is null, `none_yet` is a lock that keeps it so.
    [[nodiscard]] std::shared_ptr<wait_queue> made(std::unique_lock<std::mutex>& none_yet) const noexcept
    {
        if (auto queue = made()) return queue;
        none_yet = queues_->lock();
        if (queue_) none_yet.unlock();
        return queue_;
    }

    failure release(std::shared_ptr<wait_queue> const& queue) noexcept
    {
        several_locks::of_this_thread().gave_back(queue.get());
        return queue ? queue->release(*state_) : failure{make_error_code(errc::not_owner), {}};
    }

    /// Returns: why the lease cannot be extended to `ttl`; empty if it can. Follows the ttl and a comma.
    [[nodiscard]] std::string refused(std::chrono::milliseconds ttl) const
    {
        auto why = store().refused_lease(*key_, ttl);
        auto const margin = state_->options->stop_margin;
        if (!why.empty() || margin.count() == 0) return why;
        why = store().refused_margin(*key_, ttl, margin);
        if (!why.empty()) why = "with a stop_margin of " + std::to_string(margin.count()) + " ms, " + why;
        return why;
    }

    void note_grant() const noexcept
    {
        queues_->client().reports.went_well(state_->options->on_error, name());
        several_locks::of_this_thread().granted(queue_.get(), this);
    }

    [[nodiscard]] inspection operators() const
    {
        if (in_child()) throw made_before_fork(name());
        return inspection{store()};
    }

    /// Effects: a call can begin now: there is a queue. It owns no client, also while it begins: a thread of the client
    /// may be what begins it, and would end the client. Throws: `error`: no lock can be taken in this process;
    /// `if_closed`; `std::bad_alloc`.
    void prepare(std::error_code if_closed)
    {
        if (in_child()) throw made_before_fork(name());
        if (!made_.load(std::memory_order_acquire)) {
            queues_->find(key_, queue_);
            made_.store(true, std::memory_order_release);
        }
        if (!queue_->ensure_running(*state_)) throw error_of(name(), {if_closed, "the mutex was destroyed"});
    }

    std::shared_ptr<queue_table> const queues_;
    shared_key const key_;
    std::shared_ptr<mutex_state> const state_ = std::make_shared<mutex_state>();
    std::shared_ptr<wait_queue> queue_;  // set once, by `queues_`
    std::atomic<bool> made_{false};      // it is set; before that, the mutex of `queues_` guards the client of `state_`
};

}  // namespace holdfast::detail
