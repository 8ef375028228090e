// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/eligibility.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/listener.hpp>
#include <holdfast/redis/node_reach.hpp>
#include <holdfast/redis/pending_command.hpp>
#include <holdfast/redis/pipeline.hpp>
#include <holdfast/redis/vote_ledger.hpp>

#include <chrono>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// One node of a transport: joins its `pipeline` to its `eligibility`, and both to a connection, which a derived class
/// makes over a socket or a simulated wire. No I/O and no clock of its own.
class node {
public:
    node(unsigned index, std::chrono::milliseconds node_timeout, eligibility& votes)
        : index_{index}, votes_{votes}, ledger_{votes.ledger_of(index)}, pipeline_{index, node_timeout, ledger_}
    {
    }

    node(node const&) = delete;
    node& operator=(node const&) = delete;

    [[nodiscard]] bool up() const noexcept { return pipeline_.up(); }
    [[nodiscard]] bool busy() const noexcept { return pipeline_.busy(); }

    /// Effects: a record of the holder says `text`, which is kept by the caller, over connections from now on.
    void name_holder(std::string_view text) noexcept { holder_ = text; }

    /// Effects: see `transport`. A roll-back makes no connection: what was in flight when the last one broke is rolled
    /// back over the next one in any case, which `finish` makes.
    std::error_code send(command const& c, listener* whom, boot_clock::time_point now) noexcept
    try {
        node_reach now_is{.why_not = errc::cannot_connect};
        if (whom || up()) now_is = {.why_not = connect(now), .undecided = undecided(now)};
        auto const why = pipeline_.send(c, whom, now_is, now);
        write_ready(now);
        return whom ? why : std::error_code{};
    } catch (std::bad_alloc const&) {
        if (whom) pipeline_.forget(*whom);
        return std::make_error_code(std::errc::not_enough_memory);
    }

    /// Returns: whether the user may use the queues of waiters, as far as is known.
    [[nodiscard]] bool queues() const noexcept { return pipeline_.queues(); }

    /// Returns: how long its fastest answer over this connection took; as long as possible if it has not answered.
    [[nodiscard]] boot_clock::duration fastest() const noexcept { return pipeline_.fastest(); }

    /// Effects: notes that an owner token was drawn, of which nothing has been sent; that the node refused it for good.
    void began(owner_token const& token) noexcept { ledger_.began(token); }
    void refused(owner_token const& token) noexcept { ledger_.released(token); }

    void forget(listener& whom) noexcept { pipeline_.forget(whom); }
    void leave_if_refused(listener const& whom) noexcept { pipeline_.leave_if_refused(whom); }

    /// Returns: whether it may not have got a release yet that no operation waits for.
    [[nodiscard]] bool unfinished() noexcept { return pipeline_.unfinished(); }

    /// Effects: sends such a release again, over the next connection if there is none. It is the connection that a call
    /// for another lock would make. Returns: whether such a release is late or not under way.
    bool finish(boot_clock::time_point now) noexcept
    try {
        if (!unfinished()) return false;
        bool const left = pipeline_.finish(now);
        if (left && !up()) static_cast<void>(connect(now));
        write_ready(now);
        return left;
    } catch (std::bad_alloc const&) {
        return true;
    }

    /// Effects: gives up a connection that no longer answers in time. A quorum that decides without this node does not
    /// wait long enough to notice.
    void discard_unanswered(boot_clock::time_point now) noexcept
    {
        if (pipeline_.stopped(now)) disconnect_silent(now);
    }

    /// Effects: see `transport`. A connection that is being made, or was just made, still has its time.
    void give_up(listener& whom, boot_clock::time_point now) noexcept
    {
        if (pipeline_.give_up(whom, now)) disconnect_silent(now);
    }

    /// Effects: gives up an idle connection whose greeting showed the clock a while ago, if that was out of line, or is
    /// in doubt: the next one shows it again.
    void discard_outdated(boot_clock::time_point now) noexcept
    {
        if (!up() || busy() || !votes_.outdated(index_, now)) return;
        if (doubted_since_ || votes_.out_of_line(index_) || votes_.contradicted(index_, now))
            disconnect(errc::connection_lost, now);
    }

    /// Effects: notes that the clock may have been set since it was seen. If it has been in doubt for a second, a
    /// connection that is never idle is given up, too.
    void doubt_clock(boot_clock::time_point now) noexcept
    {
        if (!doubted_since_) doubted_since_ = now;
        if (up() && now - *doubted_since_ >= std::chrono::seconds{1} && votes_.outdated(index_, now))
            disconnect(errc::connection_lost, now);
    }

    [[nodiscard]] bool undecided(boot_clock::time_point now) const noexcept
    {
        return up() && votes_.undecided(index_, now);
    }

    /// Returns: no error, or why the node has no vote. No error, too, while that is not decided.
    [[nodiscard]] std::error_code may_vote(boot_clock::time_point now) const noexcept
    {
        return up() && !undecided(now) ? votes_.may_vote(index_, now) : std::error_code{};
    }

    /// Returns: whether it is connected and has not given its vote to `token`, as far as is known, and no release of
    /// that may still arrive.
    [[nodiscard]] bool lacks_vote_for(owner_token const& token) const noexcept
    {
        return up() && ledger_.may_reacquire(token);
    }

    /// Returns: whether it certainly has a vote. Requires: it is connected.
    [[nodiscard]] bool has_vote(boot_clock::time_point now) const noexcept
    {
        return !undecided(now) && !may_vote(now);  // mutant: a lost vote taken back from who has none
    }

    /// Effects: sends or fails what waited for the decision on the node's vote.
    void decide(boot_clock::time_point now) noexcept
    try {
        if (!up() || undecided(now)) return;
        pipeline_.decided(may_vote(now));
        tell_failures(now);
        // The next connection may show the clock more exactly.
        if (up() && votes_.vague(index_)) return disconnect(errc::clock_out_of_line, now);
        write_ready(now);
    } catch (std::bad_alloc const&) {
        disconnect(std::make_error_code(std::errc::not_enough_memory), now);
    }

protected:
    ~node() = default;

    /// Effects: begins to connect if necessary. Returns: no error if the node is connected or being connected to;
    /// otherwise why not.
    virtual std::error_code connect(boot_clock::time_point now) = 0;

    /// Effects: ends the connection, if there is one, because of `why`.
    virtual void disconnect(std::error_code why, boot_clock::time_point now) = 0;

    /// Effects: ends the connection, over which an answer is overdue, unless something has arrived.
    virtual void disconnect_silent(boot_clock::time_point now) = 0;

    /// Effects: puts `next`, with those that are joined to it, on the wire; does not disconnect. Throws:
    /// `std::bad_alloc`; then they stay where they were.
    virtual void write(pending_command const& next) = 0;

    /// Effects: `write_all` is called before anything is sent over this connection. Returns: false if it is not.
    virtual bool keeps_back() noexcept { return false; }

    /// Effects: puts all that is ready on the wire. Throws: `std::bad_alloc`.
    void write_all(boot_clock::time_point now)
    {
        while (up()) {
            auto const* const next = pipeline_.next_to_write();
            if (!next) return;
            write(*next);
            pipeline_.written(now);
        }
    }

    /// What there is to write and to expect, as the connection sees it.
    [[nodiscard]] pipeline const& commands() const noexcept { return pipeline_; }
    [[nodiscard]] unsigned index() const noexcept { return index_; }

    /// Effects: the node is connected. Its greeting took `took`, and said what its clock shows, and for how long it has
    /// certainly run. Throws: `std::bad_alloc`.
    void came_up(std::chrono::microseconds server_time, boot_clock::duration uptime, boot_clock::duration took,
                 boot_clock::time_point now)
    {
        doubted_since_.reset();
        votes_.connected(index_, server_time, uptime, now, took);
        pipeline_.connected(
            {.floor = votes_.floor(index_), .fence_lifetime = votes_.fence_lifetime(), .holder = holder_, .took = took},
            now);
        write_ready(now);
    }

    /// Effects: the node has answered `a` to the oldest command. Throws: `std::bad_alloc`.
    void answered(answer const& a, boot_clock::time_point now)
    {
        if (auto* const whom = pipeline_.answered(a, now)) whom->on_answer(index_, a, now);
        write_ready(now);
    }

    /// Effects: the connection is gone, or could not be made, because of `why`.
    void went_down(std::error_code why, boot_clock::time_point now) noexcept
    {
        votes_.disconnected(index_);
        pipeline_.went_down(why, now);
        tell_failures(now);
    }

private:
    void write_ready(boot_clock::time_point now)
    {
        if (!up() || (pipeline_.may_keep_back() && keeps_back())) return;
        write_all(now);
    }

    void tell_failures(boot_clock::time_point now) noexcept
    {
        for (auto one = pipeline_.next_failure(); one.whom; one = pipeline_.next_failure())
            one.whom->on_answer(index_, answer::failed(one.why), now);
    }

    unsigned index_;
    eligibility& votes_;
    vote_ledger ledger_;
    pipeline pipeline_;
    std::string_view holder_;                              // empty: no record is kept
    std::optional<boot_clock::time_point> doubted_since_;  // the clock, as it was seen
};

}  // namespace holdfast::redis
