// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/parents.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// A request of a machine. Its answer, and the notice of a watch, come back with the tag.
struct action {
    request what;
    unsigned tag;
};

/// What an acquire has to do.
struct acquire_plan {
    std::string lock;          ///< the path of the lock
    std::string content = {};  ///< what the node says, for people
    bool once = false;         ///< do not wait for others
    bool look_first = false;   ///< it is not known whether the children of the lock may be listed
    std::function<owner_token()> tokens = &owner_token::fresh;
};

/// What an acquire leaves to be removed, and how to recognize it.
struct leftover {
    std::string lock;
    std::string prefix;   ///< the name begins with it; empty if the node is at the lock's path
    std::string node;     ///< its path, if known
    std::int64_t czxid;   ///< of the node, if known; otherwise 0
    std::string content;  ///< of the node, if it is at the lock's path
    std::int64_t session;
    /// The containers above the node, from the top, that may have been made and never had a child.
    std::vector<std::string> containers = {};
};

/// The common part of the machines that take a lock: told what happens, they say what to send. They know nothing of
/// time and threads.
class acquire_machine {
public:
    enum class phase : std::uint8_t { working, granted, failed };

    explicit acquire_machine(acquire_plan plan) : plan_{std::move(plan)} {}
    acquire_machine(acquire_machine const&) = delete;
    acquire_machine& operator=(acquire_machine const&) = delete;
    virtual ~acquire_machine() = default;

    /// Effects: requests can be sent, in `session`. Begins, or goes on if an answer was lost.
    void connected(std::int64_t session)
    {
        if (phase_ != phase::working) return;
        bool const another = session != session_;
        session_ = session;
        if (!std::exchange(stalled_, false) && !another) return;
        if (another) {
            made_ = in_doubt_ = false;
            start_over();
        } else {
            resume();
        }
    }

    /// Effects: the session is over, and all its nodes are gone.
    void expired()
    {
        if (phase_ != phase::working) return;
        session_ = 0;
        made_ = in_doubt_ = false;
        actions_.clear();
        next_round();
        stalled_ = true;
    }

    /// Effects: takes the answer to the request of `tag`. An answer of an earlier step is ignored.
    void answered(unsigned tag, reply const& r)
    {
        if (phase_ != phase::working || tag / slots != round_) return;
        put_off_ = r.undecided() ? r.code : std::error_code{};
        reached_ = reached_ || !r.undecided();
        auto const slot = tag % slots;
        if (state_ == state::creating && slot >= first_parent && slot < beside)
            return parents_.answered(slot - first_parent, r);
        bool const makes = state_ == state::creating && slot == first;
        if (makes) in_doubt_ = r.what == answer::lost;
        if (r.undecided()) {
            // What comes after a create or a barrier that was not done proves nothing.
            if (makes || state_ == state::searching) next_round();
            return stall();
        }
        if (state_ == state::searching && slot == first) return;  // what comes after it counts
        if (r.what == answer::refused) return fail(r.code);
        take(slot, r);
    }

    /// Effects: takes the notice of the watch of `tag`. One of an earlier watch may come before the answer that it
    /// waits for.
    void noticed(unsigned tag)
    {
        if (phase_ != phase::working || tag / slots != round_) return;
        waits() ? look_again() : static_cast<void>(noticed_ = true);
    }

    /// Effects: ends the acquire without the lock.
    void give_up(std::error_code why)
    {
        if (phase_ == phase::working) fail(why);
    }

    [[nodiscard]] phase now() const noexcept { return phase_; }
    [[nodiscard]] std::error_code why() const noexcept { return why_; }

    /// Returns: whether it has nothing to do until `connected` is called again.
    [[nodiscard]] bool stalled() const noexcept { return stalled_ && phase_ == phase::working; }

    /// Returns: whether anything was ever answered, so that a quorum could be asked.
    [[nodiscard]] bool reached() const noexcept { return reached_; }

    /// Returns: whether it has found that another client has the lock, and waits for that to change.
    [[nodiscard]] bool waits() const noexcept { return state_ == state::watching || state_ == state::waiting; }

    /// Returns: why the last request is sent again; no error if it is not.
    [[nodiscard]] std::error_code put_off() const noexcept { return put_off_; }

    /// Returns: whether it may have made a node, or one above it.
    // mutant: a node in doubt not removed
    [[nodiscard]] bool left_something() const noexcept { return made_ || in_doubt_ || !parents_.missing().empty(); }
    [[nodiscard]] virtual leftover what_is_left() const = 0;

    /// Returns: details of `why()`; empty if there are none of its own.
    [[nodiscard]] virtual std::string detail() const { return {}; }

    /// Returns: whether the children of the lock could be listed.
    [[nodiscard]] bool may_read() const noexcept { return may_read_; }

    [[nodiscard]] std::int64_t czxid() const noexcept { return czxid_; }

    /// Returns: the first fencing token of the hold. Requires: it is granted.
    [[nodiscard]] virtual std::uint64_t first_token() const noexcept { return first_token_of(czxid_); }
    [[nodiscard]] std::int64_t session() const noexcept { return session_; }

    [[nodiscard]] std::vector<action> take_actions() noexcept { return std::exchange(actions_, {}); }

protected:
    /// The states of all these machines; each has a table of its own.
    enum class state : std::uint8_t { looking, creating, searching, checking, listing, tied, watching, waiting };

    static constexpr unsigned slots = 1U << 16U;
    static constexpr unsigned first = 0;  ///< the slot of what makes our node, or of a barrier
    static constexpr unsigned second = 1;
    static constexpr unsigned first_parent = 2;  ///< the slot of the first node above ours
    /// The slot of what is read beside a list. The one after it is, in the last round, a tag of the operation's own.
    static constexpr unsigned beside = slots - 2;

    virtual void start_over() = 0;
    virtual void resume() = 0;
    virtual void create() = 0;
    /// Effects: takes the answer in `slot`, which is decided and no refusal.
    virtual void take(unsigned slot, reply const& r) = 0;
    virtual void look_again() {}  ///< the node that it watches has changed

    /// Returns: the request that makes the missing node `path` above ours.
    [[nodiscard]] virtual request parent(std::string const& path) const
    {
        return {request::kind::create_container, path};
    }

    [[nodiscard]] acquire_plan const& plan() const noexcept { return plan_; }

    /// Effects: it is in `next`. The answers to earlier requests are ignored.
    void enter(state next)
    {
        state_ = next;
        next_round();
    }

    /// Effects: the answers to earlier requests are ignored.
    void next_round() noexcept
    {
        round_ = (round_ + 1) % slots;
        noticed_ = false;
    }

    /// Returns: whether there was a notice in this round, before it waited for one.
    [[nodiscard]] bool was_noticed() const noexcept { return noticed_; }

    void send(unsigned slot, request what) { actions_.push_back({std::move(what), round_ * slots + slot}); }

    /// Effects: asks for the nodes below the lock's, in the state `as`.
    void ask_for_line(state as)
    {
        enter(as);
        send(second, {request::kind::children, plan().lock});
    }

    /// Effects: looks for our node by `what`, which counts only after the barrier before it.
    void look_for(request what)
    {
        enter(state::searching);
        send(first, {request::kind::confirm});  // mutant: a lost node looked for without a barrier
        send(second, std::move(what));
    }

    /// Effects: sends `what`, which makes our node, after requests that make the missing nodes above it.
    void send_create(request what)
    {
        auto const& above = parents_.missing();
        parents_.ask();
        for (unsigned i = 0; i < above.size(); ++i) send(first_parent + i, parent(above[i]));
        send(first, std::move(what));
    }
    /// Effects: the node above ours was missing. Makes one more, `lowest` or one above it, along with ours. If all of
    /// them were made, they went in the same moment: then all is tried again, at once the first time, after a while
    /// from then on.
    void make_parent(std::string_view lowest)
    {
        auto const before = parents_.missing().size();
        if (auto const why = parents_.go_up(lowest)) return fail(why);
        if (parents_.missing().size() > before || !std::exchange(repeated_, true)) return create();
        next_round();
        stall();
    }
    /// Effects: our node is there, as `r` says.
    void have(reply const& r)
    {
        made_ = true;
        czxid_ = r.stat.czxid;
        parents_.forget();
    }
    void stall() noexcept { stalled_ = true; }
    void know_list() noexcept { may_read_ = true; }
    void grant() noexcept { phase_ = phase::granted; }

    void fail(std::error_code why) noexcept
    {
        why_ = why;
        phase_ = phase::failed;
        actions_.clear();
    }

    state state_ = state::creating;
    owner_token id_;  ///< identifies its node; every client can see it
    zookeeper::parents parents_;
    std::int64_t czxid_ = 0;
    bool made_ = false;      ///< our node exists
    bool in_doubt_ = false;  ///< our node may exist: a create was sent, and no answer says that it failed

private:
    acquire_plan plan_;
    phase phase_ = phase::working;
    std::error_code why_;
    std::error_code put_off_;
    std::int64_t session_ = 0;
    unsigned round_ = 0;
    bool stalled_ = true;
    bool repeated_ = false;  // a create was repeated although all nodes above had been made
    bool noticed_ = false;   // in this round
    bool reached_ = false;
    bool may_read_ = false;
    std::vector<action> actions_;
};

}  // namespace holdfast::zookeeper
