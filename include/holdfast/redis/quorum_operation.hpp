// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/quorum/extend_machine.hpp>
#include <holdfast/quorum/release_machine.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/machine_operation.hpp>
#include <holdfast/redis/transport.hpp>

#include <chrono>
#include <mutex>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Runs a machine over a transport that sends a request to every node. A derived class has what the request is made of.
template <class Operation, class Machine>
class quorum_operation : public machine_operation<Operation, Machine> {
    using base = machine_operation<Operation, Machine>;

protected:
    using base::transport_;

    quorum_operation(transport& way, Machine machine, node_memory* lent = nullptr) : base{way, std::move(machine), lent}
    {
    }

    /// Requires: it does not run.
    ~quorum_operation() override = default;

    /// Effects: an operation that has not ended is abandoned: its completion is not told. A derived class calls it in
    /// its destructor: until then another thread may bring an answer, after which it is asked for its request.
    void stop() noexcept
    {
        if (!this->runs()) return;
        std::scoped_lock guard{transport_};
        if (this->runs()) this->abandon({});
    }

    /// Returns: what to send to `node`.
    [[nodiscard]] virtual command request_for(unsigned node) noexcept = 0;

private:
    bool act(quorum::poll_step const& step) noexcept override
    {
        this->give_up(step.give_up);
        step.ask.for_each([&](unsigned node) { this->send(node, request_for(node)); });
        if (step.done) this->stop_asking();
        return step.done;
    }
};

class extend_operation final : public quorum_operation<pending_extend, quorum::extend_machine> {
public:
    extend_operation(transport& way, shared_keys const& keys, owner_token const& token, std::chrono::milliseconds ttl)
        : quorum_operation{way, {way.nodes(), ttl}}, keys_{keys}, token_{token}, ttl_{ttl}
    {
    }

    ~extend_operation() override { stop(); }

    void cancel() noexcept override
    {
        std::scoped_lock guard{transport_};
        end();
    }

    /// A node that lacks the lock and has no vote says why it has none.
    void on_answer(unsigned node, answer const& a, boot_clock::time_point now) override
    {
        release_requested_ = release_requested_ || a.release_requested;
        quorum_operation::on_answer(node, a, now);
        if (a.what == answer::kind::refused && !a.error) errors_.note(node, transport_.may_vote(node, now));
    }

    [[nodiscard]] result<boot_clock::time_point> outcome() const override
    {
        auto const got = machine_.outcome();
        if (!got.error) return got.valid_until;
        return errors_.explain(transport_, got.error, got.node, "renewal");
    }

    [[nodiscard]] bool release_requested() const noexcept override { return release_requested_; }

private:
    /// It asks for the node's vote if the node lost it or never gave it, and has one.
    [[nodiscard]] command request_for(unsigned node) noexcept override
    {
        bool const again = transport_.may_reacquire(node, token_);
        return {.what = again ? command::verb::reacquire : command::verb::extend,
                .keys = keys_,
                .token = token_,
                .ttl = ttl_};
    }

    shared_keys keys_;
    owner_token token_;
    std::chrono::milliseconds ttl_;
    bool release_requested_ = false;
};

/// Some holds have one from their beginning, so it is small: it has no more than the request is made of.
class release_operation final : public quorum_operation<pending_release, quorum::release_machine> {
public:
    release_operation(transport& way, shared_keys const& keys, node_memory* lent = nullptr)
        : quorum_operation{way, quorum::release_machine{way.nodes()}, lent}, keys_{keys}
    {
    }

    ~release_operation() override { stop(); }

    void bind(owner_token const& token) noexcept override { token_ = token; }
    void cancel() noexcept override {}

    [[nodiscard]] failure outcome() const override
    {
        auto const code = machine_.outcome();
        if (code == holdfast::errc::not_owner || !code) return {code, {}};
        return errors_.explain(transport_, code, machine_.failed_node());
    }

    [[nodiscard]] bool others_wait() const noexcept override { return machine_.others_wait(); }

private:
    [[nodiscard]] command request_for(unsigned /*node*/) noexcept override
    {
        return {.what = command::verb::release, .keys = keys_, .token = token_};
    }

    shared_keys keys_;
    owner_token token_;
};

}  // namespace holdfast::redis
