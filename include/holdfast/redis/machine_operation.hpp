// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/quorum/answer.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/node_errors.hpp>
#include <holdfast/redis/transport.hpp>

#include <array>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// What an operation keeps of each node; lent to one that must not need other memory.
struct node_memory {
    std::array<void*, max_nodes - 1> links{};
    std::array<std::error_code, max_nodes - 1> errors{};
};

/// Runs a machine of `quorum/`, or a `question_machine`, over a transport: keeps whom it has asked, and tells it what
/// became of that. `Operation` is the interface for its caller; a derived class does what a step says.
template <class Operation, class Machine>
class machine_operation : public Operation, public listener, public running {
public:
    void start(completion& done) override
    {
        std::scoped_lock guard{transport_};
        transport_.begin(*this, done);
        started_ = true;
        perform(machine_.start(transport_.now()));
    }

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return machine_.wake_at(); }

    void on_time(boot_clock::time_point now) noexcept override
    {
        if (!ended_) perform(machine_.on_time(now));
    }

    void on_answer(unsigned node, answer const& a, boot_clock::time_point) override
    {
        if (!under_way_.has(node)) return;
        under_way_.remove(node);
        errors_.note(node, a.error);
        if (acting_) return failed_.add(node);  // the connection to it is over
        // The clock is read again to judge whether a lease can still be used: since the answer came this thread may
        // have stood still.
        perform(machine_.on_answer(node, a, transport_.now()));
    }

protected:
    using step_type = decltype(std::declval<Machine&>().start({}));

    machine_operation(transport& way, Machine machine, node_memory* lent = nullptr)
        : listener{way.size(), lent ? lent->links.data() : nullptr},
          transport_{way},
          errors_{way.size(), lent ? lent->errors.data() : nullptr},
          machine_{std::move(machine)}
    {
    }

    /// Requires: it does not run. The class that has `act` sees to that: steps may come until it is abandoned.
    ~machine_operation() override = default;

    [[nodiscard]] bool runs() const noexcept { return started_ && !ended_; }

    /// Effects: acts on `last`, and ends it without telling the completion. Requires: it runs; the transport's lock is
    /// held.
    void abandon(step_type const& last) noexcept
    {
        acting_ = true;
        static_cast<void>(act(last));
        forget(under_way_);
        ended_ = true;
        transport_.abandon(*this);
    }

    /// Effects: does what a step of the machine says. Returns: whether it is the last.
    virtual bool act(step_type const& step) noexcept = 0;

    /// Returns: the next step, after what can be done only when no command is left that was not sent; nothing if there
    /// is none.
    virtual std::optional<step_type> more() noexcept { return std::nullopt; }

    /// Returns: whether it is in the middle of a step. Sending may show that a connection is over; the machine is told
    /// so after the step.
    [[nodiscard]] bool acting() const noexcept { return acting_; }

    /// Effects: acts on the steps of the machine. A node that nothing can be sent to counts as an error answer, which
    /// the machine gets after the step. Requires: not `acting()`.
    void perform(step_type step) noexcept
    {
        acting_ = true;
        while (!act(step)) {
            if (!unsent_.empty()) {
                auto const node = take_first(unsent_);
                step = machine_.on_answer(node, quorum::answer::not_sent(errors_.of(node)), transport_.now());
            } else if (!failed_.empty()) {
                auto const node = take_first(failed_);
                step = machine_.on_answer(node, answer::failed(errors_.of(node)), transport_.now());
            } else if (auto next = more()) {
                step = *next;
            } else {
                acting_ = false;
                return transport_.updated(*this);
            }
        }
        acting_ = false;
        end();
    }

    /// Returns: the first of `nodes`, which it is taken out of.
    [[nodiscard]] static unsigned take_first(node_set& nodes) noexcept
    {
        auto const node = nodes.first();
        nodes.remove(node);
        return node;
    }

    /// Effects: counts no more answers, and tells the completion. Requires: the transport's lock is held.
    void end() noexcept
    {
        if (std::exchange(ended_, true)) return;
        forget(under_way_);
        transport_.ended(*this);
    }

    /// Effects: sends `c` to `node`, unless `why_not` says why it has to fail.
    void send(unsigned node, command const& c, std::error_code why_not = {})
    {
        if (!why_not) why_not = transport_.send(node, c, this);
        errors_.note(node, why_not);
        (why_not ? unsent_ : under_way_).add(node);
    }

    /// Effects: the answers of `nodes` are overdue.
    void give_up(node_set nodes) noexcept
    {
        nodes.for_each([&](unsigned node) { errors_.note(node, errc::no_answer); });
        (nodes & under_way_).for_each([&](unsigned node) { transport_.give_up(node, this); });
        under_way_ = under_way_ - nodes;
        failed_ = failed_ - nodes;
    }

    /// Effects: waits no longer for those that have not answered.
    void stop_asking() noexcept
    {
        unsent_ = failed_ = {};
        forget(under_way_);
    }

    void forget(node_set nodes) noexcept
    {
        nodes.for_each([&](unsigned node) { transport_.forget(node, this); });
        under_way_ = under_way_ - nodes;
    }

private:
    bool acting_ = false;
    bool started_ = false;
    bool ended_ = false;

protected:
    // NOLINTBEGIN(*-non-private-member-variables-in-classes)
    node_set under_way_;
    transport& transport_;
    node_errors errors_;
    Machine machine_;
    // NOLINTEND(*-non-private-member-variables-in-classes)

private:
    node_set unsent_;  // what a step said could not be sent to them; the machine must still be told
    node_set failed_;  // they answered with an error in the middle of a step; the machine must still be told
};

}  // namespace holdfast::redis
