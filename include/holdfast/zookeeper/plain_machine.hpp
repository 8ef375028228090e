// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquirer.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <string>
#include <utility>

namespace holdfast::zookeeper {

/// Takes a lock by making one ephemeral node at its very name. Nobody queues: whoever makes the node first when it goes has the lock.
///
/// | state    | sent                        | answer → next |
/// |----------|-----------------------------|---------------|
/// | creating | create                      | made → granted; there already → watching, or failed (`timed_out`) where once; no parent → creating, with one more container before it; lost → checking |
/// | checking | confirm, data of the node   | made by us → granted; otherwise → creating |
/// | watching | data of the node, with watch | there → waiting; made by us → granted; gone → creating |
/// | waiting  | –                           | the notice → pausing |
/// | pausing  | –                           | a short time, drawn at random → creating |
class plain_machine final : public acquirer {
public:
    using acquirer::acquirer;

    [[nodiscard]] remains what_is_left() const override
    {
        return {plan().lock, {}, plan().lock, made_ ? czxid_ : 0, content(), session(), parents_.missing()};
    }

private:
    enum class state { creating, checking, watching, waiting };
    static constexpr unsigned first = 0;
    static constexpr unsigned second = 1;

    /// It has the attempt's number in it: another lock of the same session may make the same node.
    [[nodiscard]] std::string content() const { return plan().content + " id=" + std::string{id_.view()}; }

    void start_over() override
    {
        id_ = plan().tokens();
        create();
    }

    void resume() override
    {
        if (in_doubt_)
            check();
        else
            create();
    }

    void create()
    {
        enter(state::creating);
        in_doubt_ = true;
        send_create({request::kind::create_plain, plan().lock, content()});
    }

    void check()
    {
        enter(state::checking);
        send(first, {request::kind::confirm});
        send(second, {request::kind::data, plan().lock});
    }

    void take(unsigned slot, reply const& r) override
    {
        if (state_ == state::creating && slot >= first_parent) return parents_.answered(slot - first_parent, r);
        bool const answered = r.what != answer::lost && r.what != answer::postponed;
        if (state_ == state::checking && slot == first && answered) return;  // what counts is what came behind it
        if (answered) reach();
        if (state_ == state::creating) in_doubt_ = r.what == answer::lost;
        if (!answered) {
            if (state_ == state::checking) next_round();  // what comes behind a barrier that was not done says nothing
            return stall();
        }
        if (r.what == answer::refused) return fail(r.code);
        switch (state_) {
        case state::creating: return take_created(r);
        case state::checking: return take_checked(r);
        case state::watching:
            if (r.what != answer::ok) return create();
            if (is_ours(r)) return have(r.stat);
            state_ = state::waiting;  // in the same round: the notice has its tag
            return;
        case state::waiting: return;
        }
    }

    void take_created(reply const& r)
    {
        if (r.what == answer::ok) return have(r.stat);
        if (r.what == answer::no_node) {
            if (auto const why = parents_.go_up(parent_of(plan().lock))) return fail(why);
            return create();
        }
        parents_.forget();
        if (plan().once) {
            fail(make_error_code(holdfast::errc::timed_out));
        } else {
            enter(state::watching);
            send(first, {request::kind::watch, plan().lock});
        }
    }

    void take_checked(reply const& r)
    {
        bool const ours = is_ours(r);
        in_doubt_ = false;
        if (ours) return have(r.stat);
        create();
    }

    [[nodiscard]] bool is_ours(reply const& r) const { return r.what == answer::ok && r.stat.owner == session() && r.text == content(); }

    void have(node_stat const& stat)
    {
        made_ = true;
        czxid_ = stat.czxid;
        parents_.forget();
        grant();
    }

    void wake() override
    {
        if (state_ != state::watching && state_ != state::waiting) return;
        enter(state::waiting);
        pause();
    }

    void after_pause() override { create(); }

    void enter(state next)
    {
        state_ = next;
        next_round();
    }

    state state_ = state::creating;
};

}  // namespace holdfast::zookeeper
