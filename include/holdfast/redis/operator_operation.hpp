// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/quorum/node_failures.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/question_machine.hpp>
#include <holdfast/redis/quorum_operation.hpp>
#include <holdfast/redis/transport.hpp>

#include <cstdint>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// What becomes of a question whose answer is lost.
enum class lost_answer {
    repeat,      ///< it changes nothing, or the same again
    unknown,     ///< it might have an effect on another lease
    same_again,  ///< it is repeated, as it would do the same again; without an answer it may have been done
};

/// What an operator asks of every node; a derived class says what the answers mean.
template <class R>
class operator_operation : public quorum_operation<operation<result<R>>, question_machine> {
    using base = quorum_operation<operation<result<R>>, question_machine>;

public:
    void cancel() noexcept override
    {
        std::scoped_lock guard{transport_};
        if (this->runs()) fail(std::errc::operation_canceled);
    }

    [[nodiscard]] result<R> outcome() const override
    {
        if (failed_) return failed_;
        if (answered().size() < majority()) return unanswered();
        return evaluate();
    }

    void on_answer(unsigned node, answer const& a, boot_clock::time_point now) override
    try {
        if (!a.error && this->under_way_.has(node)) {
            answers_[node] = a;
            values_[node] = next(node, a);
            if (values_[node] != 0) machine_.expect_more(node);
        }
        base::on_answer(node, a, now);
    } catch (std::bad_alloc const&) {
        fail(std::errc::not_enough_memory);
    }

protected:
    operator_operation(transport& way, command what, lost_answer then)
        : base{way, {way.nodes(), way.connect_timeout(), then != lost_answer::unknown}},
          question_{std::move(what)},
          then_{then},
          answers_(way.size()),
          values_(way.size(), question_.value)
    {
    }

    /// Effects: an operation that has not ended is abandoned: its completion is not told.
    ~operator_operation() override { this->stop(); }

    /// Effects: takes in the answer of a node, which is no error. Returns: the value of the next question to it; 0 if
    /// there is none.
    virtual std::uint64_t next(unsigned /*node*/, answer const& /*a*/) { return 0; }

    /// Returns: what the answers of a majority mean. Called once it has ended, without the transport's lock.
    [[nodiscard]] virtual result<R> evaluate() const = 0;

    [[nodiscard]] unsigned size() const noexcept { return transport_.size(); }
    [[nodiscard]] unsigned majority() const noexcept { return quorum::majority_of(size()); }
    [[nodiscard]] node_set answered() const noexcept { return machine_.answered(); }
    [[nodiscard]] answer const& answer_of(unsigned node) const noexcept { return answers_[node]; }

    /// Returns: the failure of a question that no majority has answered. A change is in doubt as soon as one node has
    /// made it, or may have: the lock may have stood on no more than a majority.
    [[nodiscard]] failure unanswered() const
    {
        auto changed = machine_.doubtful();
        answered().for_each([&](unsigned node) {
            if (answers_[node].what == answer::kind::applied) changed.add(node);
        });
        if (then_ != lost_answer::repeat && !changed.empty())
            return this->errors_.explain(transport_, make_error_code(holdfast::errc::outcome_unknown), changed.first());
        quorum::attempt_failures failures;
        for (unsigned node = 0; node < size(); ++node) failures.add({.error = this->errors_.of(node), .node = node});
        auto const why = failures.why(size());
        if (why.error) return this->errors_.explain(transport_, why.error, why.node);
        return {make_error_code(holdfast::errc::unavailable), {}};
    }

private:
    using base::machine_, base::transport_;

    [[nodiscard]] command request_for(unsigned node) noexcept override
    {
        auto c = question_;
        c.value = values_[node];
        return c;
    }

    void fail(std::errc why) noexcept
    {
        failed_ = std::make_error_code(why);
        this->end();
    }

    command const question_;
    lost_answer const then_;
    std::vector<answer> answers_;        // the last of each node
    std::vector<std::uint64_t> values_;  // of the next question to each node
    std::error_code failed_;
};

}  // namespace holdfast::redis
