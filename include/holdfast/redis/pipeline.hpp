// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/joined_renewals.hpp>
#include <holdfast/redis/listener.hpp>
#include <holdfast/redis/node_reach.hpp>
#include <holdfast/redis/pending_command.hpp>
#include <holdfast/redis/pulse.hpp>
#include <holdfast/redis/release_retries.hpp>
#include <holdfast/redis/script_forms.hpp>
#include <holdfast/redis/vote_ledger.hpp>

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// The commands to one node: which are not answered yet, which must be repeated or undone over the next connection, and
/// how the node has voted. No I/O, clock or thread: its owner tells it what happens. After each event the owner asks
/// what to write (`next_to_write`), and which listener gets no answer (`next_failure`).
///
/// A command is in one of these places:
///
/// | place   | meaning                                            | left by |
/// |---------|----------------------------------------------------|---------|
/// | waiting | for a connection; an acquire: for the node's vote  | decided → ready; refused, down → failed |
/// | ready   | to be written                                      | written → sent; down → failed |
/// | sent    | on the wire                                        | answered; down → failed |
/// | failed  | its listener must be told                          | told |
/// | retries | a release, see `release_retries`                   | → ready |
///
/// What becomes of a command when the connection breaks, or cannot be made:
///
/// | command                    | a listener waits           | no listener waits    |
/// |----------------------------|----------------------------|----------------------|
/// | acquire, sent              | fails; its release is kept | dropped: its holder will release it |
/// | release                    | fails; it is kept          | it is kept |
/// | of operators, and all else | fails                      | dropped |
/// | acquire, not sent          | fails                      | dropped |
///
/// If an acquire is given up with its connection, its release is kept, too: its round is lost. A leave follows the
/// refusal of an acquire whose waiter waits no longer. The acquire decided that when it ended; when the last masters
/// answer, it may be gone, and most of them grant: a leave to all would be two commands more for ten. The leave takes
/// the acquire's place here, and so needs no memory. Only releases are repeated, and what the server did not do in this
/// form: it is sent as text, without the queue or record, or alone.
class pipeline {
public:
    static constexpr std::size_t most = 65536;

    pipeline(unsigned node, std::chrono::milliseconds node_timeout, vote_ledger ledger)
        : node_{node}, pulse_{node_timeout}, ledger_{std::move(ledger)}
    {
    }
    pipeline(pipeline const&) = delete;
    pipeline& operator=(pipeline const&) = delete;

    [[nodiscard]] bool up() const noexcept { return connected_; }

    /// Effects: accepts `c`; its answer is for `whom`, or for no listener if null. Returns: why it cannot be sent; a
    /// release is kept then, if the node may have voted. Throws: `std::bad_alloc`; the only effect then is that a
    /// release is known to be wanted.
    std::error_code send(command const& c, listener* whom, node_reach const& now_is, boot_clock::time_point now)
    {
        bool const releases = c.what == command::verb::release;
        bool const never_sent = releases && !connected_ && ledger_.may_reacquire(c.token);
        bool const may_be_there = releases && !never_sent && (whom || connected_ || ledger_.voted_for(c.token));
        if (releases) ledger_.released(c.token);
        auto const why = never_sent ? make_error_code(errc::cannot_connect) : refuses(c, now_is);
        if (why && may_be_there) retries_.keep(c, now);
        if (why) return why;
        auto one = spare_.make({.what = c, .whom = whom, .since = now});
        if (whom) listener_link::set(*whom, node_, &one.front());
        if (releases) retries_.drop(c.token);
        unheard_ = unheard_ || (releases && !whom);
        if (!connected_ || (one.front().acquires() && now_is.undecided))
            waiting_.splice(waiting_.end(), one);
        else
            prepare(one);
        return {};
    }

    /// Effects: `whom` no longer wants its answer. What was not written is not sent, unless it is a release.
    void forget(listener& whom) noexcept
    {
        auto* const e = pending_command::of(whom, node_);
        if (!e) return;
        e->let_go(node_);
        unheard_ = unheard_ || e->releases();
        if (e->on_the_wire() || e->releases()) return;
        for (auto* some : {&waiting_, &ready_}) some->remove_if([e](auto const& one) { return &one == e; });
    }

    /// Effects: a leave follows if the node refuses the acquire of `whom`.
    void leave_if_refused(listener const& whom) noexcept { pending_command::leave_if_refused(whom, node_); }

    /// Effects: as `forget`, because the answer is overdue. Returns: whether the node has answered nothing at all since
    /// it was asked; then the connection must be ended.
    [[nodiscard]] bool give_up(listener& whom, boot_clock::time_point now) noexcept
    {
        auto const* const e = pending_command::of(whom, node_);
        bool const silent = e && connected_ && e->on_the_wire() && pulse_.silent_since(e->written, now);
        if (silent && e->acquires()) retries_.keep(e->what, now);
        forget(whom);
        return silent;
    }

    /// Effects: there is a connection, and the node has said `facts` about itself. Its vote is not decided yet.
    void connected(node_facts const& facts, boot_clock::time_point now) noexcept
    {
        connected_ = true;
        facts_ = facts;
        forms_ = script_forms{};
        pulse_.greeted(facts.took, now);
        for (auto const& e : waiting_)
            if (e.whom && e.extends() && ledger_.no_release_in_flight(e.what.token)) retries_.drop(e.what.token);
        retries_.take(release_retries::most, ready_, now);  // mutant: a lost acquire undone after its repetition
        pending_commands waiting;
        waiting.swap(waiting_);
        while (!waiting.empty()) {
            auto one = take_first(waiting);
            if (one.front().acquires())
                waiting_.splice(waiting_.end(), one);
            else if (one.front().wanted(now))
                prepare(one);
        }
    }

    /// Effects: the node's vote is decided. What waited for it is sent, or fails if `why` says that there is no vote.
    void decided(std::error_code why) noexcept
    {
        while (connected_ && !waiting_.empty()) {
            auto one = take_first(waiting_);
            why ? failed_.add(one, why) : prepare(one);
        }
    }

    /// Effects: the connection is gone, or could not be made, because of `why`.
    void went_down(std::error_code why, boot_clock::time_point now) noexcept
    {
        connected_ = false;
        for (auto* some : {&sent_, &ready_, &waiting_}) {
            pending_commands old;
            old.swap(*some);
            while (!old.empty()) {
                auto one = take_first(old);
                auto const& e = one.front();
                bool const sent = some == &sent_;
                if (sent) ledger_.lost(e.what);
                if (e.whom && (e.releases() || (sent && e.acquires()))) retries_.keep(e.what, now);
                if (e.whom)
                    failed_.add(one, why);
                else if (e.wanted(now))
                    retries_.keep_first(one);
            }
        }
    }

    /// Returns: whether no command on the wire is unanswered.
    [[nodiscard]] bool answered_all() const noexcept { return sent_.empty(); }

    /// Returns: the command that the node answers next. Requires: not `answered_all()`.
    [[nodiscard]] pending_command const& oldest() const noexcept { return sent_.front(); }

    /// Returns: whether `oldest()`, which was answered with `a`, is sent again: as text, without the queue, or alone.
    [[nodiscard]] bool repeats(answer const& a) const noexcept
    {
        auto const& e = oldest();
        return script_forms::repeats(e.what, e.form, a.error) || (e.in_company && script_forms::about_one(a.error));
    }

    /// Returns: whether the user may use the queues of waiters, as far as is known.
    [[nodiscard]] bool queues() const noexcept { return forms_.queues(); }
    [[nodiscard]] boot_clock::duration fastest() const noexcept { return pulse_.fastest(); }

    /// Effects: the node has answered `a` to `oldest()`. Returns: the listener to tell, or null.
    [[nodiscard]] listener* answered(answer const& a, boot_clock::time_point now) noexcept
    {
        bool const again = repeats(a);
        pulse_.beat(oldest().written, now);
        auto one = take_first(sent_);
        auto& e = one.front();
        ledger_.answered(e.what, a);
        if (!e.follows()) forms_.note(e.what, e.form, a.error);
        if (e.alone && !a.error && !e.what.holder_refused) forms_.join_no_more();
        // Sent once more, a roll-back would delete what a later request of its token gets: who asked gives it back.
        bool const too_late = a.error && e.releases() && !e.whom && asked_again(e.what.token, sent_, ready_, waiting_);
        if (again) {
            e.ask_in_another_form(a.error);
            // mutant: a refused roll-back sent again after the next acquire
            if ((e.wanted(now) || e.what.what == command::verb::leave) && !too_late) prepare(one);
            return nullptr;
        }
        auto* const whom = e.let_go(node_);
        if (e.releases() && !a.error) retries_.take(release_retries::most, ready_, now);
        if (!too_late && e.releases() && a.error == holdfast::errc::unavailable) retries_.keep_first(one);
        if (!a.error && e.follows_with_leave(a)) prepare(one);
        spare_.keep(one);
        return whom;
    }

    /// Returns: whether what is ready may be kept back, so that more can go along: a renewal is the last of it.
    [[nodiscard]] bool may_keep_back() const noexcept { return !ready_.empty() && may_join(ready_.back(), forms_); }

    /// Returns: what to write next, with those that are joined to it, or null.
    [[nodiscard]] pending_command const* next_to_write() noexcept
    {
        if (ready_.empty()) return nullptr;
        join_renewals(ready_, forms_, facts_.holder);
        ready_.front().form = forms_.next(ready_.front().what, ready_.front().whom);
        return &ready_.front();
    }

    /// Effects: `next_to_write()`, with those that are joined to it, is on the wire.
    void written(boot_clock::time_point now) noexcept
    {
        forms_.sent(ready_.front().what);
        auto const form = ready_.front().form;
        for (auto left = ready_.front().what.together; left != 0; --left) {
            ready_.front().written = now;
            ready_.front().form = form;
            sent_.splice(sent_.end(), ready_, ready_.begin());
        }
    }

    /// Returns: a listener that gets no answer, and why.
    [[nodiscard]] failed_commands::failure next_failure() noexcept { return failed_.next(node_); }

    /// Returns: whether the connection must be ended because the node no longer answers in time.
    [[nodiscard]] bool stopped(boot_clock::time_point now) const noexcept
    {
        return connected_ && !sent_.empty() && pulse_.stopped(sent_.front().written, now);
    }

    /// Returns: whether a command waits for an answer, or to be sent.
    [[nodiscard]] bool busy() const noexcept { return !sent_.empty() || !ready_.empty() || !waiting_.empty(); }

    /// Returns: whether the node may not have got a release yet whose answer no listener waits for.
    [[nodiscard]] bool unfinished() noexcept { return unheard_ = unheard_ || !retries_.empty(); }

    /// Effects: one that was refused for now is to be written again. Returns: whether one is late or not under way.
    [[nodiscard]] bool finish(boot_clock::time_point now) noexcept
    {
        auto const unheard = [&](auto by) { return any_unheard(by, sent_, ready_, waiting_); };
        retries_.take(connected_ && !unheard(now) ? 1 : 0, ready_, now);  // what has expired is dropped in any case
        unheard_ = unheard(now) || !retries_.empty();
        return !retries_.empty() || unheard(now - usual_answer);
    }

    /// Returns: whether something on the wire must not arrive after the connection is given up. An acquire is rolled
    /// back over the next connection; one that arrived after that would leave a lock that no client knows of.
    [[nodiscard]] bool harmful_later() const noexcept
    {
        return std::any_of(sent_.begin(), sent_.end(), [](auto const& e) { return e.asks_for_vote(); });
    }

private:
    [[nodiscard]] std::error_code refuses(command const& c, node_reach const& now_is) const noexcept
    {
        if (now_is.why_not) return now_is.why_not;
        if (sent_.size() + ready_.size() + waiting_.size() >= most) return errc::no_answer;
        bool const too_late = c.what == command::verb::reacquire && (!connected_ || now_is.undecided);
        return too_late ? make_error_code(errc::cannot_connect) : std::error_code{};
    }

    /// Effects: queues the only element of `one` for writing, after the releases that must precede it.
    void prepare(pending_commands& one) noexcept
    {
        auto& e = one.front();
        if (e.extends() && ledger_.no_release_in_flight(e.what.token)) retries_.drop(e.what.token);
        // mutant: a lost acquire undone after its repetition
        if (e.asks_for_vote() || e.extends()) retries_.take(e.what, ready_);
        e.what.floor = facts_.floor;
        e.what.fence_lifetime = facts_.fence_lifetime;
        ready_.splice(ready_.end(), one);
    }

    unsigned node_;
    pulse pulse_;
    bool connected_ = false;
    node_facts facts_;
    script_forms forms_;
    pending_commands waiting_;
    pending_commands ready_;
    pending_commands sent_;
    failed_commands failed_;
    spare_commands spare_;
    release_retries retries_;
    vote_ledger ledger_;
    bool unheard_ = false;  // there may be a release whose answer no listener waits for
};

}  // namespace holdfast::redis
