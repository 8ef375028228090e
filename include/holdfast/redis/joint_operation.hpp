// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/quorum/quorum_poll.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/machine_operation.hpp>
#include <holdfast/redis/question_machine.hpp>
#include <holdfast/redis/transport.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Takes several locks of one server by one request, all or none.
///
/// | event | next |
/// |---|---|
/// | start | asks, with a fresh token for each lock; or done: it has no vote, or its user no queues |
/// | yes, in time | done: all are held |
/// | yes, so late that one of the leases cannot be used | all are given back; done: `unavailable` |
/// | no | done: `timed_out`; `contended` if neither a lease nor a reservation is in the way |
/// | an error, no answer for one node timeout, cancel, destroyed | all are given back; done |
///
/// All are given back although the server may have taken none: the script can have failed in the middle.
class joint_operation final : public machine_operation<pending_acquire_all, question_machine> {
public:
    /// Requires: `way` has one node.
    joint_operation(transport& way, std::vector<acquire_claim> const& claims)
        : machine_operation{way, {way.nodes(), {}, false}}, grants_(claims.size())
    {
        auto all = std::make_shared<std::vector<joint_member>>();
        for (auto const& one : claims)
            all->push_back({.keys = std::static_pointer_cast<lock_keys const>(one.first),
                            .token = {},
                            .ttl = one.second.ttl,
                            .batch = one.second.fences,
                            .stop_margin = one.second.stop_margin});
        members_ = std::move(all);
    }

    /// Effects: an operation that has not ended is abandoned, and its completion is not told.
    ~joint_operation() override
    {
        if (!runs()) return;
        std::scoped_lock guard{transport_};
        if (!runs()) return;
        give_back();
        abandon({});
    }

    void start(completion& done) override
    {
        for (auto& one : *members_) one.token = transport_.fresh_token();
        machine_operation::start(done);
    }

    void cancel() noexcept override
    {
        std::scoped_lock guard{transport_};
        if (!runs()) return;
        give_back();
        failed_ = std::make_error_code(std::errc::operation_canceled);
        end();
    }

    [[nodiscard]] failure outcome() const override
    {
        if (!errors_.of(0)) return {.code = failed_, .detail = {}, .held_until = held_until_};
        return errors_.explain(transport_, failed_, 0);
    }

    [[nodiscard]] grant const& granted(std::size_t place) const noexcept override { return grants_[place]; }
    [[nodiscard]] std::size_t blocker() const noexcept override { return blocker_; }

    void on_answer(unsigned node, answer const& a, boot_clock::time_point now) override
    {
        if (!under_way_.has(node)) return;
        // The clock is read again: since the answer came this thread may have stood still.
        bool const late = a.what == answer::kind::applied && !grant_all(*a.report, transport_.now());
        if (a.what == answer::kind::refused && !a.error) {
            blocker_ = a.report->blocker;
            if (a.time_left.count() >= 0) held_until_ = now + std::min(a.time_left, longest_ttl);
            // Where only a queue, a fence or a missing right is in the way, each lock has to be asked for by itself.
            bool const leased = a.time_left.count() != 0 && a.time_left.count() != -2;
            failed_ = make_error_code(leased ? holdfast::errc::timed_out : holdfast::errc::contended);
        }
        machine_operation::on_answer(node, late ? answer::failed(errc::no_answer) : a, now);
    }

private:
    bool act(quorum::poll_step const& step) noexcept override
    {
        if (!step.ask.empty()) ask();
        give_up(step.give_up);
        if (!step.done) return false;
        if (auto const why = errors_.of(0)) {
            failed_ = why;
            if (sent_) give_back();
        }
        stop_asking();
        return true;
    }

    void ask() noexcept
    {
        sent_at_ = transport_.now();
        auto why = transport_.may_vote(0, sent_at_);
        if (!why && !transport_.queues(0)) why = errc::not_permitted;
        send(0, {.what = command::verb::acquire_all, .keys = members_->front().keys, .token = {}, .members = members_},
             why);
        sent_ = under_way_.has(0);
    }

    /// Returns: whether each lease can be used at `now`.
    [[nodiscard]] bool grant_all(node_report const& said, boot_clock::time_point now) noexcept
    {
        for (std::size_t i = 0; i < grants_.size(); ++i) {
            auto const& one = (*members_)[i];
            auto const until = valid_until(sent_at_, one.ttl);  // mutant: the leases of several counted from the answer
            if (now >= until - announcement_margin(one.ttl) - one.stop_margin) return false;
            auto const fence = said.fences[i] == 0 ? 0 : said.fences[i] - one.batch + 1;
            grants_[i] = {.token = one.token, .valid_until = until, .fence = fence, .fences = one.batch};
        }
        return true;
    }

    /// What is on the wire is answered before these.
    void give_back() noexcept
    {
        for (auto const& one : *members_)
            transport_.send(0, {.what = command::verb::release, .keys = one.keys, .token = one.token, .ttl = one.ttl},
                            nullptr);
    }

    std::shared_ptr<std::vector<joint_member>> members_;
    std::vector<grant> grants_;
    std::size_t blocker_ = 0;
    boot_clock::time_point held_until_{};
    std::error_code failed_;
    boot_clock::time_point sent_at_{};
    bool sent_ = false;
};

}  // namespace holdfast::redis
