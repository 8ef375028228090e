// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/redis/acquire_machine.hpp>
#include <holdfast/redis/node_errors.hpp>
#include <holdfast/redis/transport.hpp>
#include <holdfast/redis/votes.hpp>

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::redis {

/// Runs an `acquire_machine` over a transport.
template <Transport T>
class acquire_operation : public running_operation {
public:
    acquire_operation(T& transport, shared_keys keys, acquire_request const& request)
        : transport_{transport}, keys_{std::move(keys)}, request_{request},
          machine_{{.nodes = transport.size(),
                    .node_timeout = transport.node_timeout(),
                    .request = request,
                    .seed = transport.random()}}
    {
    }

    acquire_operation(acquire_operation const&) = delete;
    acquire_operation& operator=(acquire_operation const&) = delete;

    ~acquire_operation() override { abandon(); }

    void start()
    {
        std::scoped_lock guard{transport_};
        started_ = true;
        perform(machine_.start(transport_.now()));
    }

    bool wait_until(boot_clock::time_point t) { return settled_ = transport_.wait(*this, t); }

    void cancel() noexcept
    {
        std::scoped_lock guard{transport_};
        if (!done()) perform(machine_.cancel(transport_.now()));
    }

    /// Returns: whether rounds have failed, and no quorum could be asked so far; nothing where no round is over. May be called from any thread.
    [[nodiscard]] std::optional<bool> unavailable() const noexcept
    {
        std::scoped_lock guard{transport_};
        return machine_.unavailable_so_far();
    }

    /// Returns: what stands at the key on a majority of the nodes that no lock of this kind has put there; nothing where it may be one. May be
    /// called from any thread.
    [[nodiscard]] std::optional<failure> obstacle() const
    {
        std::unique_lock guard{transport_};
        if (strange_.size() < quorum(transport_.size())) return std::nullopt;
        auto const node = strange_.first();
        auto const* const what = other_type_.has(node) ? " holds a value of another type" : " has no expiry";
        guard.unlock();
        auto server = transport_.describe(node, {});
        return failure{make_error_code(holdfast::errc::contended),
                       "its key on " + server + what + ": no lock of this kind has put it there, and it counts as held until it is gone", server};
    }

    /// Requires: `done()`.
    [[nodiscard]] result<grant> outcome() const
    {
        auto const& got = *outcome_;
        if (!got.error) return grant{.token = token_, .valid_until = got.valid_until, .fence = got.fence, .fences = request_.fences};
        if (!got.cause) return got.error;
        auto why = errors_.explain(transport_, got.error == holdfast::errc::unavailable ? got.cause : got.error, got.node);
        if (why.code == make_error_code(errc::foreign_fence)) why.detail += ", key " + holdfast::quoted(keys_->fence);
        return why;
    }

    [[nodiscard]] bool done() const noexcept override { return outcome_.has_value(); }
    [[nodiscard]] boot_clock::time_point wake_at() const noexcept override { return machine_.wake_at(); }

    /// A node whose vote waited for the clocks of others has failed for that reason, not for want of an answer.
    void on_time(boot_clock::time_point now) override
    {
        auto const waited_for = under_way_;
        waited_for.for_each([&](unsigned node) {
            if (done() || !under_way_.has(node) || now < machine_.wake_at() || !transport_.undecided(node, now)) return;
            forget(node_set::of(node));
            errors_.note(node, errc::clock_not_compared);
            perform(machine_.on_answer(node, answer::failed(errc::clock_not_compared), now));
        });
        if (!done()) perform(machine_.on_time(now));
    }

    void on_answer(unsigned node, answer const& a, boot_clock::time_point) override
    {
        if (!under_way_.has(node)) return;
        under_way_.remove(node);
        errors_.note(node, a.error);
        bool const endless = a.what == answer::kind::no && a.time_left.count() < 0;
        endless || a.other_type ? strange_.add(node) : strange_.remove(node);
        a.other_type ? other_type_.add(node) : other_type_.remove(node);
        if (a.what == answer::kind::yes) said_yes_.add(node);
        // Whether a lease can still be used is judged by a clock that is read behind the answer: between `now` and it this thread may have stood still.
        perform(machine_.on_answer(node, a, transport_.now()));
    }

    void on_watching(unsigned node, boot_clock::time_point now) override { on_released(node, now); }

    void on_released(unsigned node, boot_clock::time_point now) override
    {
        if (!done()) perform(machine_.on_released(node, now));
    }

    void on_watch_failed(unsigned node, std::error_code why, boot_clock::time_point now) override
    {
        if (done()) return;
        errors_.note(node, why);
        perform(machine_.on_watch_failed(node, why, now));
    }

protected:
    /// Effects: see `ballot_operation`; what was got is rolled back.
    void abandon() noexcept
    {
        if (started_ && !std::exchange(settled_, true)) cancel();
    }

private:
    /// Does what a step says. A node that cannot be sent to has answered with an error, which the machine learns after the step.
    void perform(acquire_step step) noexcept
    {
        node_set unsent;
        node_set unwatched;
        std::array<std::error_code, max_nodes> why{};
        for (;;) {
            (step.give_up & under_way_).for_each([&](unsigned node) { transport_.give_up(node, this); });
            under_way_ = under_way_ - step.give_up;
            if (!step.roll_back.empty() || step.done) {
                unsent = {};
                errors_.note_unanswered(under_way_ - step.give_up);
                step.give_up.for_each([&](unsigned node) { errors_.note(node, errc::no_answer); });
                forget(under_way_);
            }
            step.roll_back.for_each([&](unsigned node) {
                auto undo = make(command::verb::release);
                undo.granted = said_yes_.has(node);
                transport_.send(node, undo, nullptr);
            });
            if (step.new_token) draw_token();
            auto const send = [&](unsigned node, command const& c, std::error_code refused) {
                why[node] = refused ? refused : transport_.send(node, c, this);
                errors_.note(node, why[node]);
                (why[node] ? unsent : under_way_).add(node);
            };
            if (!step.ask.empty()) {
                auto const now = transport_.now();
                auto ask = make(command::verb::acquire);
                ask.value = ask.fence == fence_source::counter ? transport_.proposal(now) : 0;
                step.ask.for_each([&](unsigned node) { send(node, ask, no_token_ ? no_token_ : transport_.may_vote(node, now)); });
            }
            if (!step.confirm.empty()) {
                auto confirm = make(command::verb::confirm);
                confirm.value = machine_.fence();
                step.confirm.for_each([&](unsigned node) { send(node, confirm, {}); });
            }
            if (step.watch) {
                watching_ = true;
                unwatched = node_set::all(transport_.size());
            }
            if (step.done) {
                outcome_ = step.done;
                if (watching_) transport_.unwatch(keys_, this);
                break;
            }
            if (!unsent.empty()) {
                auto const node = unsent.first();
                unsent.remove(node);
                step = machine_.on_answer(node, answer::failed(why[node]), transport_.now());
            } else if (!unwatched.empty()) {
                auto const node = unwatched.first();
                unwatched.remove(node);
                auto const deaf = transport_.watch(node, keys_, this);
                if (deaf) errors_.note(node, deaf);
                step = deaf ? machine_.on_watch_failed(node, deaf, transport_.now()) : acquire_step{};
            } else {
                break;
            }
        }
        transport_.updated(*this);
    }

    void draw_token() noexcept
    try {
        no_token_ = {};
        said_yes_ = {};
        token_ = transport_.fresh_token();
        votes::begin(*keys_, token_);
    } catch (error const& e) {
        no_token_ = e.code();
    }

    void forget(node_set nodes) noexcept
    {
        nodes.for_each([&](unsigned node) { transport_.forget(node, this); });
        under_way_ = under_way_ - nodes;
    }

    [[nodiscard]] command make(command::verb what) const noexcept
    {
        return {.what = what,
                .fence = request_.fences == 0 ? fence_source::none : transport_.fencing(),
                .keys = keys_,
                .token = token_,
                .ttl = request_.ttl,
                .batch = request_.fences,
                .value = 0,
                .max_lead = transport_.max_lead()};
    }

    T& transport_;
    shared_keys keys_;
    acquire_request request_;
    acquire_machine machine_;
    owner_token token_;
    std::error_code no_token_;  ///< why there is none
    node_set under_way_;
    node_set said_yes_;  // to an acquire of the present token
    node_errors errors_;
    node_set strange_;     // say that the key does not expire, or is of another type
    node_set other_type_;  // of these, the latter
    bool started_ = false;
    bool settled_ = false;
    bool watching_ = false;
    std::optional<acquire_outcome> outcome_;
};

}  // namespace holdfast::redis
