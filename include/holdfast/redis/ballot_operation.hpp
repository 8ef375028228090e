// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/redis/extend_machine.hpp>
#include <holdfast/redis/node_errors.hpp>
#include <holdfast/redis/release_machine.hpp>
#include <holdfast/redis/transport.hpp>
#include <holdfast/redis/votes.hpp>

#include <array>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::redis {

/// Runs an `extend_machine` or a `release_machine` over a transport.
template <class Machine, Transport T>
class ballot_operation : public running_operation {
public:
    ballot_operation(ballot_operation const&) = delete;
    ballot_operation& operator=(ballot_operation const&) = delete;

    void start()
    {
        std::scoped_lock guard{transport_};
        started_ = true;
        perform(machine_.start(transport_.now()));
    }

    bool wait_until(boot_clock::time_point t) { return settled_ = transport_.wait(*this, t); }

    /// Effects: asks nobody any more, and no answer counts: it has its result. May be called from any thread while one waits for it.
    void withdraw() noexcept
    {
        std::scoped_lock guard{transport_};
        end();
    }

    [[nodiscard]] bool done() const noexcept override { return done_; }
    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return machine_.wake_at(); }
    void on_time(boot_clock::time_point now) override { perform(machine_.on_time(now)); }

    void on_answer(unsigned node, answer const& a, boot_clock::time_point now) override
    {
        if (!under_way_.has(node)) return;
        under_way_.remove(node);
        errors_.note(node, a.error);
        perform(machine_.on_answer(node, a, now));
    }

    void on_watching(unsigned, boot_clock::time_point) override {}
    void on_watch_failed(unsigned, std::error_code, boot_clock::time_point) override {}
    void on_released(unsigned, boot_clock::time_point) override {}

protected:
    ballot_operation(T& transport, command request, Machine machine)
        : transport_{transport}, request_{std::move(request)}, machine_{std::move(machine)}
    {
    }

    ~ballot_operation() override { abandon(); }

    /// Effects: nobody else touches the operation from now on. For the destructor of a class that other threads see as its base: it comes before
    /// anything is destroyed.
    void abandon() noexcept
    {
        if (!started_ || std::exchange(settled_, true)) return;
        std::scoped_lock guard{transport_};  // whoever has just got the last answer may not have done with it
        end();
    }

    [[nodiscard]] Machine const& machine() const noexcept { return machine_; }

    /// Returns: `code`, which came from `node`, with the reasons of all nodes that failed.
    [[nodiscard]] failure explain(std::error_code code, unsigned node, std::string_view what) const
    {
        return errors_.explain(transport_, code, node, what);
    }

private:
    void perform(ballot_step step) noexcept
    {
        node_set unsent;
        std::array<std::error_code, max_nodes> why{};
        for (;;) {
            step.give_up.for_each([&](unsigned node) { errors_.note(node, errc::no_answer); });
            (step.give_up & under_way_).for_each([&](unsigned node) { transport_.give_up(node, this); });
            under_way_ = under_way_ - step.give_up;
            step.ask.for_each([&](unsigned node) {
                why[node] = transport_.send(node, request_for(node), this);
                errors_.note(node, why[node]);
                (why[node] ? unsent : under_way_).add(node);
            });
            if (step.done) {
                errors_.note_unanswered(under_way_);
                forget(under_way_);
                done_ = true;
                break;
            }
            if (unsent.empty()) break;
            auto const node = unsent.first();
            unsent.remove(node);
            step = machine_.on_answer(node, answer::failed(why[node]), transport_.now());
        }
        transport_.updated(*this);
    }

    /// Returns: what to send to `node`: an extension asks for the vote of one that has lost it, or never gave it, where it has one.
    [[nodiscard]] command request_for(unsigned node) noexcept
    {
        auto c = request_;
        bool const regains = extends(c) && transport_.size() > 1 && votes::may_regain(c, node) && !transport_.may_vote(node, transport_.now());
        if (regains) c.what = command::verb::regain;
        return c;
    }

    void end() noexcept
    {
        if (done_) return;
        forget(under_way_);
        done_ = true;
        transport_.updated(*this);
    }

    void forget(node_set nodes) noexcept
    {
        nodes.for_each([&](unsigned node) { transport_.forget(node, this); });
        under_way_ = under_way_ - nodes;
    }

    T& transport_;
    command request_;
    Machine machine_;
    node_set under_way_;
    node_errors errors_;
    bool started_ = false;
    bool done_ = false;
    bool settled_ = false;  // its thread knows that it is done, or has abandoned it
};

template <Transport T>
class extend_operation : public ballot_operation<extend_machine, T> {
public:
    extend_operation(T& transport, shared_keys const& keys, owner_token const& token, std::chrono::milliseconds ttl)
        : ballot_operation<extend_machine, T>{transport,
                                              {.what = command::verb::extend, .keys = keys, .token = token, .ttl = ttl},
                                              {transport.size(), transport.node_timeout(), ttl}}
    {
    }

    /// Requires: `done()`.
    [[nodiscard]] result<boot_clock::time_point> outcome() const
    {
        auto const got = this->machine().outcome();
        if (!got.error) return got.valid_until;
        return this->explain(got.error, got.node, "renewal");
    }
};

template <Transport T>
class release_operation : public ballot_operation<release_machine, T> {
public:
    release_operation(T& transport, shared_keys const& keys, owner_token const& token)
        : ballot_operation<release_machine, T>{transport,
                                               {.what = command::verb::release, .keys = keys, .token = token, .granted = transport.size() == 1},
                                               {transport.size(), transport.node_timeout()}}
    {
    }

    /// Requires: `done()`.
    [[nodiscard]] std::error_code outcome() const noexcept { return this->machine().outcome(); }

    /// Requires: `done()`, and an error.
    [[nodiscard]] failure why() const { return this->explain(outcome(), this->machine().failed_node(), {}); }

    /// Requires: `done()`.
    [[nodiscard]] bool others_wait() const noexcept { return this->machine().others_wait(); }
};

}  // namespace holdfast::redis
