// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/quorum/node_group.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/node_errors.hpp>
#include <holdfast/redis/transport.hpp>

#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// What an operator asks of every node; a derived class says what the answers mean. Unlike a lock, it is not in a
/// hurry, and often the first to use its connections:
///
/// | event | next |
/// |---|---|
/// | start | ask all |
/// | an answer after which there is more to ask (`more`) | ask that node for it |
/// | the connection broke, the first time, and the question may be repeated | ask that node again |
/// | all have answered, or cannot be asked | done |
/// | one node timeout without an answer | done, if a majority has answered |
/// | that, and the time for a connection | the other answers are missing; done |
template <class R>
class operator_operation : public operation<result<R>>, public listener, public running {
public:
    operator_operation(operator_operation const&) = delete;
    operator_operation& operator=(operator_operation const&) = delete;

    void start(completion& done) override
    {
        std::scoped_lock guard{transport_};
        transport_.begin(*this, done);
        runs_ = true;
        give_time();
        to_ask_ = node_set::all(transport_.size());
        go_on();
    }

    void cancel() noexcept override
    {
        std::scoped_lock guard{transport_};
        if (runs_) failed_ = std::make_error_code(std::errc::operation_canceled);
        end();
    }

    [[nodiscard]] result<R> outcome() const override
    {
        if (failed_) return failed_;
        return evaluate();
    }

    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return enough() ? soon_ : limit_; }

    void on_time(boot_clock::time_point now) noexcept override
    {
        if (!runs_ || now < wake_at()) return;
        auto const late = std::exchange(under_way_, {});
        late.for_each([&](unsigned node) {
            errors_.note(node, errc::no_answer);
            transport_.give_up(node, this);
        });
        end();
    }

    void on_answer(unsigned node, answer const& a, boot_clock::time_point) override
    {
        if (!under_way_.has(node)) return;
        under_way_.remove(node);
        answers_[node] = a;
        arrived_.add(node);
        if (!acting_) go_on();  // otherwise in the middle of a send
    }

    void on_watching(unsigned, boot_clock::time_point) override {}
    void on_watch_failed(unsigned, std::error_code, boot_clock::time_point) override {}
    void on_released(unsigned, boot_clock::time_point) override {}

protected:
    /// What becomes of a question whose answer is lost.
    enum class lost_answer {
        repeat,      ///< it changes nothing, or the same again
        unknown,     ///< it might have an effect on another lease
        same_again,  ///< it is repeated, as it would do the same again; without an answer it may have been done
    };

    /// `first`: the value of the first question to each node.
    operator_operation(transport& way, command what, lost_answer then, std::uint64_t first = 0)
        : listener{way.size()},
          transport_{way},
          errors_{way.size()},
          what_{std::move(what)},
          then_{then},
          answers_(way.size()),
          next_(way.size(), first)
    {
    }

    ~operator_operation() override
    {
        if (!runs_) return;
        std::scoped_lock guard{transport_};
        forget_all();
        transport_.abandon(*this);
    }

    /// Effects: takes in the answer of a node, which is no error. Returns: whether there is more to ask of it; `next`
    /// asks for that.
    virtual bool more(unsigned /*node*/, answer const& /*a*/, command& /*next*/) { return false; }

    /// Returns: what the answers mean. Called once it has ended, without the transport's lock.
    [[nodiscard]] virtual result<R> evaluate() const = 0;

    [[nodiscard]] unsigned size() const noexcept { return transport_.size(); }
    [[nodiscard]] unsigned majority() const noexcept { return quorum::majority_of(size()); }
    [[nodiscard]] node_set answered() const noexcept { return answered_; }
    [[nodiscard]] answer const& answer_of(unsigned node) const noexcept { return answers_[node]; }

    /// Returns: the failure of a question that no majority has answered.
    [[nodiscard]] failure unanswered() const
    {
        for (unsigned node = 0; node < size(); ++node) {
            auto const why = errors_.of(node);
            if (!why) continue;
            bool const unknown =
                then_ != lost_answer::repeat &&
                (why == errc::connection_lost || why == errc::protocol_error || why == errc::no_answer);
            return errors_.explain(transport_, unknown ? make_error_code(holdfast::errc::outcome_unknown) : why, node);
        }
        return {make_error_code(holdfast::errc::unavailable), {}};
    }

private:
    void go_on() noexcept
    try {
        acting_ = true;
        while (!to_ask_.empty() || !arrived_.empty()) {
            if (!arrived_.empty())
                take_in(take_first(arrived_));
            else
                ask(take_first(to_ask_));
        }
        acting_ = false;
        if (under_way_.empty()) return end();
        transport_.updated(*this);
    } catch (std::bad_alloc const&) {
        failed_ = std::make_error_code(std::errc::not_enough_memory);
        end();
    }

    void ask(unsigned node)
    {
        what_.value = next_[node];
        auto const why = transport_.send(node, what_, this);
        if (!why) return under_way_.add(node);
        answers_[node] = answer::failed(why);
        arrived_.add(node);
    }

    void take_in(unsigned node)
    {
        auto const& a = answers_[node];
        errors_.note(node, a.error);
        give_time();
        if (a.error == errc::connection_lost && then_ != lost_answer::unknown && !again_.has(node)) {
            again_.add(node);
            return to_ask_.add(node);
        }
        if (a.error) return;
        auto next = what_;
        if (more(node, a, next)) {
            next_[node] = next.value;
            return to_ask_.add(node);
        }
        answered_.add(node);
    }

    /// Effects: the nodes have their time from now on.
    void give_time() noexcept
    {
        soon_ = transport_.now() + transport_.node_timeout();
        limit_ = soon_ + transport_.connect_timeout();
    }

    [[nodiscard]] bool enough() const noexcept { return answered_.size() >= majority(); }

    static unsigned take_first(node_set& nodes) noexcept
    {
        auto const node = nodes.first();
        nodes.remove(node);
        return node;
    }

    void forget_all() noexcept
    {
        std::exchange(under_way_, {}).for_each([&](unsigned node) { transport_.forget(node, this); });
    }

    void end() noexcept
    {
        if (!std::exchange(runs_, false)) return;
        forget_all();
        transport_.ended(*this);
    }

    transport& transport_;
    node_errors errors_;
    command what_;
    lost_answer const then_;
    std::vector<answer> answers_;      // the last of each node
    std::vector<std::uint64_t> next_;  // the value of the next question to each node
    node_set to_ask_;
    node_set under_way_;
    node_set arrived_;   // their answers have come, and are not taken in
    node_set answered_;  // they have answered all
    node_set again_;
    std::error_code failed_;
    boot_clock::time_point soon_{};
    boot_clock::time_point limit_{};
    bool acting_ = false;
    bool runs_ = false;
};

}  // namespace holdfast::redis
