// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/admission.hpp>
#include <holdfast/redis/greeting_listener.hpp>
#include <holdfast/redis/kept_releases.hpp>
#include <holdfast/redis/link.hpp>
#include <holdfast/redis/pending_command.hpp>
#include <holdfast/redis/protocol.hpp>
#include <holdfast/redis/pulse.hpp>
#include <holdfast/redis/server_record.hpp>
#include <holdfast/redis/transport.hpp>
#include <holdfast/redis/votes.hpp>

#include <algorithm>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

namespace holdfast::redis {

/// The commands that are on their way to one node: in the order in which they were sent, answered in that order.
class connection final : private link {
public:
    connection(io::reactor& reactor, unsigned node, endpoint const& server, std::shared_ptr<io::secure_layer const> tls,
               std::chrono::milliseconds operation_timeout, std::chrono::milliseconds connect_timeout, admission* admission,
               greeting_listener& told, server_record& record)
        : link{reactor, server, std::move(tls), connect_timeout, admission ? hello::with_clock : hello::about_itself}, node_{node}, pulse_{operation_timeout},
          admission_{admission}, told_{told}, record_{record}
    {
    }

    using link::reason, link::up, link::why_down;

    /// Effects: see `Transport`.
    std::error_code send(command const& c, listener* whom, boot_clock::time_point now) noexcept
    try {
        bool const releases = c.what == command::verb::release;
        if (releases) votes::released(c, node_);
        if (!whom && !up()) {  // what was under way when the link went down is rolled back when it comes up, in any case
            if (granted(c)) kept_.keep(c, now);
            return {};
        }
        bool const may_be_there = releases && (kept_.has(c.token) || granted(c) || up());
        record_.asked();
        auto why = connect(now);
        if (!why && queue_.size() >= longest_queue) why = errc::no_answer;
        if (why) {
            if (may_be_there) kept_.keep(c, now);
            return why;
        }
        pending_commands one;
        one.push_back({.what = c, .whom = whom, .since = now});
        auto& e = one.front();
        e.what.granted = c.granted || may_be_there;
        // What is regained is never behind a release, and who has the lock does not wait for a vote to be decided.
        if (c.what == command::verb::regain && (!up() || undecided(now))) e.what.what = command::verb::extend;
        e.form = first_form(e.what, whom);
        if (!up())
            queue_.splice(queue_.end(), one);
        else if (e.asks_for_vote() && undecided(now))
            undecided_.splice(undecided_.end(), one);
        else
            transmit(one, now);
        if (whom) listener_link::set(*whom, node_, &e);
        if (releases) kept_.drop(c.token);
        return {};
    } catch (std::bad_alloc const&) {
        return std::make_error_code(std::errc::not_enough_memory);
    }

    void forget(listener* whom) noexcept
    {
        auto* const e = pending_command::of(*whom, node_);
        if (!e) return;
        e->let_go(node_);
        if (!e->releases()) (sent_ ? undecided_ : queue_).remove_if([e](pending_command const& one) { return &one == e; });
    }

    /// Effects: gives up a connection that does not answer in time any more: a quorum that decides without this node does not wait until it notices.
    void discard_unanswered(boot_clock::time_point now) noexcept
    {
        if (up() && !queue_.empty() && pulse_.stopped(queue_.front().written, now) && !readable()) drop(now, true);
    }

    [[nodiscard]] bool waits() const noexcept { return !queue_.empty(); }  ///< for answers
    /// Effects: see `Transport`. A connection that is still being made, or has just been, is given its own time.
    void give_up(listener* whom, boot_clock::time_point now) noexcept
    {
        auto const* const e = pending_command::of(*whom, node_);
        bool const silent = e && sent_ && e->written != boot_clock::time_point{} && pulse_.silent_since(e->written, now);
        forget(whom);
        if (silent && !readable()) drop(now, true);
    }

    /// Effects: ends the connection, where there is one.
    void drop(boot_clock::time_point now, bool overdue = false) noexcept
    {
        overdue_ = overdue && up();
        if (up()) disconnect(errc::connection_lost, now);
    }

    [[nodiscard]] bool undecided(boot_clock::time_point now) const noexcept { return admission_ && up() && admission_->undecided(node_, now); }

    /// Returns: no error, or why the node has no vote; no error, too, where that is not decided yet.
    [[nodiscard]] std::error_code may_vote(boot_clock::time_point now) const noexcept
    {
        return admission_ && up() && !undecided(now) ? admission_->may_vote(node_, now) : std::error_code{};
    }

    /// Effects: sends or fails what waited for the node's vote to be decided.
    void decide(boot_clock::time_point now) noexcept
    try {
        if (!up() || undecided(now)) return;
        auto const refused = may_vote(now);
        if (refused) {
            failing_.splice(failing_.end(), undecided_);
            fail(refused, now);
        }
        if (admission_ && admission_->vague(node_)) return disconnect(errc::clock_out_of_line, now);  // the next one may look closer
        while (!undecided_.empty()) transmit_first(undecided_, now);
    } catch (std::bad_alloc const&) {
        disconnect(std::make_error_code(std::errc::not_enough_memory), now);
    }

private:
    static constexpr std::size_t longest_queue = 65536;

    /// Effects: puts the only element of `one` on the wire. Throws: `std::bad_alloc`, in which case it is not, and stays where it was.
    void transmit(pending_commands& one, boot_clock::time_point now)
    {
        auto& e = one.front();
        if (e.what.what == command::verb::regain && !votes::may_regain(e.what, node_)) e.what.what = command::verb::extend;  // sent again, too late
        if (e.extends() && votes::intact(e.what, node_)) kept_.drop_extended(e.what.token);
        if (e.asks_for_vote()) send_kept(1, now);
        e.written = now;
        if (admission_) {
            e.what.floor = admission_->floor(node_);
            e.what.fence_lifetime = admission_->fence_lifetime();
        }
        write(encode(e.what, e.form));
        queue_.splice(queue_.end(), one, one.begin());
    }

    /// Effects: as above, for the first of some, which leaves them.
    void transmit_first(pending_commands& some, boot_clock::time_point now)
    {
        pending_commands one;
        one.splice(one.end(), some, some.begin());
        try {
            transmit(one, now);
        } catch (...) {
            some.splice(some.begin(), one);
            throw;
        }
    }

    /// Effects: sends so many of the releases that are kept.
    void send_kept(std::size_t most, boot_clock::time_point now)
    {
        for (auto& kept = kept_.wanted(now); !kept.empty() && most-- > 0;) transmit_first(kept, now);
    }

    std::error_code refuses(greeting const& g) override { return told_.refuses(node_, g); }

    void on_up(greeting const& g, boot_clock::time_point now) override
    {
        if (admission_) admission_->connected(node_, g.server_time, admission::certain_uptime(g.uptime), now, g.took);
        sent_ = true;
        pulse_.beat(now);
        forms_ = script_forms{};
        pending_commands waiting;
        waiting.swap(queue_);
        for (auto const& e : waiting)
            if (e.whom && e.extends() && votes::intact(e.what, node_)) kept_.drop_extended(e.what.token);
        try {
            send_kept(kept_releases::most, now);
            while (!waiting.empty()) {
                auto& e = waiting.front();
                e.form = first_form(e.what, e.whom);
                if (!e.wanted(now))
                    waiting.pop_front();
                else if (e.whom && e.asks_for_vote())
                    undecided_.splice(undecided_.end(), waiting, waiting.begin());
                else
                    transmit_first(waiting, now);
            }
        } catch (std::bad_alloc const&) {
            queue_.splice(queue_.end(), waiting);
            throw;
        }
        told_.on_greeting(now);
    }

    void on_reply(reply const& r, boot_clock::time_point now) override
    {
        if (queue_.empty()) return disconnect(errc::protocol_error, now);
        pulse_.beat(now);
        pending_commands one;
        one.splice(one.end(), queue_, queue_.begin());
        auto& e = one.front();
        auto const a = decode(e.what, r);
        votes::note(e.what, node_, a);
        bool const unknown = a.error == errc::no_script && e.form == script_form::by_hash;
        forms_.note(e.what, e.form, a.error);
        if (a.what == answer::kind::error) note_error(a.error, r, script_text(e.what));
        if (unknown) {
            // An acquire that nobody waits for may have been rolled back behind its first sending; the roll-back always goes.
            if (!e.wanted(now)) return;
            e.form = script_form::by_text;
            try {
                transmit(one, now);
            } catch (std::bad_alloc const&) {  // failed with all that is under way
                queue_.splice(queue_.begin(), one);
                throw;
            }
            return;
        }
        if (a.what == answer::kind::error)
            record_.failed(a.error, [&] { return reason(a.error); });
        else if (e.asks_for_vote() || (e.extends() && a.what == answer::kind::yes && !may_vote(now)))
            record_.answered(e.written, now);
        auto* const whom = e.let_go(node_);
        auto const more = a.what == answer::kind::error ? 0 : e.releases() ? kept_releases::most : e.asks_for_vote() ? 1 : 0;
        if (e.releases() && a.error == holdfast::errc::unavailable && (whom || !(asked_again(queue_, e.what.token) || asked_again(undecided_, e.what.token)))) {
            e.written = {};  // and did nothing
            kept_.keep_first(one);
        }
        if (whom) whom->on_answer(node_, a, now);
        if (up()) send_kept(more, now);
    }

    void on_down(std::error_code why, boot_clock::time_point now) noexcept override
    {
        record_.failed(std::exchange(overdue_, false) ? make_error_code(errc::no_answer) : why, [&] { return reason(why); });
        if (admission_) admission_->disconnected(node_);
        bool const sent = std::exchange(sent_, false);
        pending_commands old;
        old.swap(queue_);
        bool const spoilt = sent && why == errc::protocol_error;
        auto const awaited = std::find_if(old.begin(), old.end(), [](auto const& e) { return e.whom != nullptr; });
        bool const spoilt_vote = spoilt && awaited != old.end() && awaited->acquires();  // a roll-back may be ahead of it
        while (!old.empty()) {
            auto& e = old.front();
            bool const may_hold = sent ? e.acquires() || e.releases() : e.releases() && e.what.granted;
            if (sent) votes::lost(e.what, node_);
            if (may_hold && e.whom) kept_.keep(e.what, now, e.releases() ? e.written : boot_clock::time_point{});
            if (e.whom)
                failing_.splice(failing_.end(), old, old.begin());
            else if (e.wanted(now))
                kept_.keep_first(old);
            else
                old.pop_front();
        }
        failing_.splice(failing_.end(), undecided_);
        // Whose acquire had no answer is told so. Others just lost their connection, and so did a release, which is sent again.
        if (spoilt_vote) fail_first(why, now);
        fail(spoilt ? errc::connection_lost : why, now);
    }

    /// An acquire that arrived behind its roll-back, which goes over the next connection, would leave a lock that nobody knows of.
    [[nodiscard]] bool harmful_later() const noexcept override
    {
        return sent_ && std::any_of(queue_.begin(), queue_.end(), [](auto const& e) { return e.asks_for_vote(); });
    }

    void fail(std::error_code why, boot_clock::time_point now) noexcept { while (!failing_.empty()) fail_first(why, now); }

    void fail_first(std::error_code why, boot_clock::time_point now) noexcept
    {
        auto* const whom = failing_.front().let_go(node_);
        failing_.pop_front();
        if (whom) whom->on_answer(node_, answer::failed(why), now);
    }

    /// Where nobody waits for the answer, nobody is there to say it in full when the server does not know the script.
    [[nodiscard]] script_form first_form(command const& c, listener const* whom) const noexcept
    {
        return whom ? forms_.next(c) : script_form::by_text;
    }

    /// Returns: whether the node said yes to the acquire of what `c` is about, or may have.
    [[nodiscard]] bool granted(command const& c) const noexcept { return c.granted || votes::may_be_there(c, node_); }

    unsigned node_;
    pulse pulse_;
    admission* admission_;
    greeting_listener& told_;
    server_record& record_;
    bool overdue_ = false;  // an answer was, which is why the connection is given up
    script_forms forms_;
    bool sent_ = false;           // what is in queue_
    pending_commands queue_;      // on the wire where the link is up, otherwise waiting for it
    pending_commands undecided_;  // the link is up, the node's vote is not decided
    pending_commands failing_;    // being told that they failed
    kept_releases kept_;
};

}  // namespace holdfast::redis
