// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <string>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Takes a lock by making one ephemeral node at the lock's path. There is no queue: when the node goes, the client that
/// makes it first has the lock.
///
/// | state | sent | answer → next |
/// |---|---|---|
/// | creating | create | made → granted; there already → watching, or failed (`timed_out`) if `once`; no parent → creating, with one more container before it; lost → searching |
/// | searching | confirm, data of the node | made by us → granted; otherwise → creating |
/// | watching | data of the node, with watch | there → waiting; made by us → granted; gone → creating; it ends with no session → failed (`not_ephemeral`) |
/// | waiting | – | the notice → creating |
class ephemeral_recipe final : public acquire_machine {
public:
    using acquire_machine::acquire_machine;

    [[nodiscard]] leftover what_is_left() const override
    {
        return {plan().lock, {}, plan().lock, made_ ? czxid_ : 0, content(), session(), parents_.missing()};
    }

private:
    /// Has the attempt's id in it: another lock of the same session may make the same node.
    [[nodiscard]] std::string content() const { return plan().content + " id=" + std::string{id_.view()}; }

    void start_over() override
    {
        id_ = plan().tokens();
        create();
    }

    void resume() override
    {
        if (in_doubt_)
            search();
        else
            create();
    }

    void create() override
    {
        enter(state::creating);
        in_doubt_ = true;
        send_create({request::kind::create_plain, plan().lock, content()});
    }

    void search() { look_for({request::kind::data, plan().lock}); }

    void take(unsigned /*slot*/, reply const& r) override
    {
        switch (state_) {
        case state::creating: return take_created(r);
        case state::searching: return take_found(r);
        case state::watching:
            if (r.what != answer::ok) return create();
            if (is_ours(r)) return take_lock(r);
            if (!r.stat.ephemeral()) return fail(errc::not_ephemeral);
            state_ = state::waiting;  // in the same round: the notice has its tag
            return;
        default: return;
        }
    }

    void take_created(reply const& r)
    {
        if (r.what == answer::ok) return take_lock(r);
        if (r.what == answer::no_node) return make_parent(parent_of(plan().lock));
        parents_.forget();
        if (plan().once) {
            fail(make_error_code(holdfast::errc::timed_out));
        } else {
            enter(state::watching);
            send(first, {request::kind::watch, plan().lock});
        }
    }

    void take_found(reply const& r)
    {
        bool const ours = is_ours(r);
        in_doubt_ = false;
        if (ours) return take_lock(r);
        create();
    }

    [[nodiscard]] bool is_ours(reply const& r) const
    {
        return r.what == answer::ok && r.stat.owner == session() && was_made_with(content(), r.text);
    }

    void take_lock(reply const& r)
    {
        have(r);
        grant();
    }

    void look_again() override { create(); }
};

}  // namespace holdfast::zookeeper
