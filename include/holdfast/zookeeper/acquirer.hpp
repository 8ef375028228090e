// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/parents.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

/// A request of a machine; its answer, and the notice of a watch, come back with the tag.
struct action {
    request what;
    unsigned tag;
};

/// What an acquire is about.
struct acquire_plan {
    std::string lock;          ///< the path of the lock
    std::string content = {};  ///< what the node tells people
    bool once = false;         ///< do not wait for others
    bool look_first = false;   ///< nobody knows whether the list of those who wait may be read
    std::function<owner_token()> tokens = &owner_token::fresh;
};

/// What has to be removed of an acquire, and by what it is known.
struct remains {
    std::string lock;
    std::string prefix;   ///< the name begins with it; empty where the node is the lock's path
    std::string node;     ///< its path, where that is known
    std::int64_t czxid;   ///< of the node, where that is known; 0 otherwise
    std::string content;  ///< of the node, where it is the lock's path
    std::int64_t session;
    std::vector<std::string> containers = {};  ///< above the node, from the top; they may be there, and never have had a child
};

/// What the machines that take a lock have in common: told what happens, they say what to send. They know nothing of time and threads.
class acquirer {
public:
    enum class phase : std::uint8_t { working, granted, failed };

    explicit acquirer(acquire_plan plan) : plan_{std::move(plan)} {}
    acquirer(acquirer const&) = delete;
    acquirer& operator=(acquirer const&) = delete;
    virtual ~acquirer() = default;

    /// Effects: requests can be sent, in `session`; begins, or goes on where an answer was lost.
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

    /// Effects: the session is over, and with it all its nodes.
    void expired()
    {
        if (phase_ != phase::working) return;
        session_ = 0;
        made_ = in_doubt_ = false;
        next_round();
        stalled_ = true;
    }

    /// Effects: takes the answer to the request of `tag`; one of an earlier step is ignored.
    void answered(unsigned tag, reply const& r)
    {
        if (phase_ != phase::working || tag / slots != round_) return;
        put_off_ = r.what == answer::lost || r.what == answer::postponed ? r.code : std::error_code{};
        take(tag % slots, r);
    }

    /// Effects: takes the notice of the watch of `tag`.
    void noticed(unsigned tag)
    {
        if (phase_ == phase::working && tag / slots == round_) wake();
    }

    /// Effects: goes on after a pause that was asked for.
    void pause_is_over()
    {
        if (phase_ == phase::working && std::exchange(pausing_, false)) after_pause();
    }

    /// Effects: ends the acquire without the lock.
    void give_up(std::error_code why)
    {
        if (phase_ == phase::working) fail(why);
    }

    /// Effects: ends the acquire where it threw while it was told something: whatever it was about, its node may be there.
    void interrupt(std::error_code why) noexcept
    {
        if (phase_ != phase::working) return;
        in_doubt_ = in_doubt_ || (!made_ && session_ != 0);
        fail(why);
    }

    [[nodiscard]] phase now() const noexcept { return phase_; }
    [[nodiscard]] std::error_code why() const noexcept { return why_; }

    /// Returns: whether it wants to pause for a short time drawn at random before it goes on.
    [[nodiscard]] bool pausing() const noexcept { return pausing_ && phase_ == phase::working; }

    /// Returns: whether anything was ever answered: a quorum could be asked.
    [[nodiscard]] bool reached() const noexcept { return reached_; }

    /// Returns: why what was answered last is asked again; no error where it is not.
    [[nodiscard]] std::error_code put_off() const noexcept { return put_off_; }

    /// Returns: whether it may have made a node, or one above it.
    [[nodiscard]] bool left_something() const noexcept { return made_ || in_doubt_ || !parents_.missing().empty(); }
    [[nodiscard]] virtual remains what_is_left() const = 0;

    /// Returns: whether the list of those who wait could be read.
    [[nodiscard]] bool may_read() const noexcept { return may_read_; }

    [[nodiscard]] std::int64_t czxid() const noexcept { return czxid_; }
    [[nodiscard]] std::int64_t session() const noexcept { return session_; }

    [[nodiscard]] std::vector<action> take_actions() noexcept { return std::exchange(actions_, {}); }

protected:
    static constexpr unsigned slots = 1U << 16U;
    static constexpr unsigned first_parent = 2;  ///< the slot of the first of the nodes above ours

    virtual void start_over() = 0;
    virtual void resume() = 0;
    virtual void take(unsigned slot, reply const& r) = 0;
    virtual void wake() = 0;
    virtual void after_pause() {}

    [[nodiscard]] acquire_plan const& plan() const noexcept { return plan_; }

    /// Effects: what was asked for, and a pause, are of no concern any more.
    void next_round() noexcept
    {
        round_ = (round_ + 1) % slots;
        pausing_ = false;
    }
    void send(unsigned slot, request what) { actions_.push_back({std::move(what), round_ * slots + slot}); }

    /// Effects: sends `what`, which makes our node, behind those that make the missing ones above it.
    void send_create(request what)
    {
        auto const& above = parents_.missing();
        parents_.ask();
        for (unsigned i = 0; i < above.size(); ++i) send(first_parent + i, {request::kind::create_container, above[i]});
        send(0, std::move(what));
    }
    void reach() noexcept { reached_ = true; }
    void stall() noexcept { stalled_ = true; }
    void pause() noexcept { pausing_ = true; }
    void know_list() noexcept { may_read_ = true; }
    void grant() noexcept { phase_ = phase::granted; }

    void fail(std::error_code why) noexcept
    {
        why_ = why;
        phase_ = phase::failed;
        actions_.clear();
    }

    owner_token id_;  ///< by which its node is known; everybody can see it
    zookeeper::parents parents_;
    std::int64_t czxid_ = 0;
    bool made_ = false;      ///< our node is there
    bool in_doubt_ = false;  ///< it may be: it was asked for, and no answer says that it was not made

private:
    acquire_plan plan_;
    phase phase_ = phase::working;
    std::error_code why_;
    std::error_code put_off_;
    std::int64_t session_ = 0;
    unsigned round_ = 0;
    bool stalled_ = true;
    bool pausing_ = false;
    bool reached_ = false;
    bool may_read_ = false;
    std::vector<action> actions_;
};

}  // namespace holdfast::zookeeper
