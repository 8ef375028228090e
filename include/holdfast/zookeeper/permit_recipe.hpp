// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Takes one of `max` permits: makes a node beside those of the other permits, and has it when there are no more than
/// `max` of them. Run by a client that has the queue's lock, so that one client waits at a time.
///
/// | state | sent | answer → next |
/// |---|---|---|
/// | looking | children | there, or no parent → creating; refused → failed, before anything is made |
/// | creating | create, children | made, children → count; no parent → creating, with one more container before it; create lost → searching |
/// | searching | confirm, children | a node with our GUID → checking; none → creating |
/// | checking | data of that node | made by us → listing; gone → creating |
/// | listing | children, with watch | → count |
/// | waiting | – | the notice → listing |
///
/// count:
///
/// | the nodes | next |
/// |---|---|
/// | ours is not there | creating with a new GUID |
/// | no more than `max` | granted |
/// | more, `once` | failed (`timed_out`) |
/// | more | waiting: any that goes counts |
///
/// No more than `max` have a permit: of those that have one at a time, the one whose node was made last has seen the
/// nodes of all. After the end of the session it fails (`session_expired`): the place in the queue is gone, too, and
/// two that wait outside of it could wait for each other. Source: Curator's recipe for a shared semaphore.
class permit_recipe final : public acquire_machine {
public:
    permit_recipe(acquire_plan plan, std::size_t max) : acquire_machine{std::move(plan)}, max_{max} {}

    [[nodiscard]] leftover what_is_left() const override
    {
        return {plan().lock, prefix(),          made_ ? node_path() : std::string{}, made_ ? czxid_ : 0, {},
                session(),   parents_.missing()};
    }

private:
    [[nodiscard]] std::string prefix() const { return "_c_" + detail::guid(naming::curator, id_) + "-lease-"; }
    [[nodiscard]] std::string node_path() const { return plan().lock + '/' + node_; }

    void start_over() override
    {
        if (std::exchange(begun_, true)) return fail(errc::session_expired);
        id_ = plan().tokens();
        if (plan().look_first && !may_read())
            ask_for_line(state::looking);
        else
            create();
    }

    void resume() override
    {
        if (made_)
            list();
        else if (in_doubt_)
            search();
        else if (state_ == state::looking)
            ask_for_line(state::looking);
        else
            create();
    }

    void create() override
    {
        enter(state::creating);
        made_ = false;
        in_doubt_ = true;
        send_create({request::kind::create_sequential, plan().lock + '/' + prefix(), plan().content});
        send(second, {listing(), plan().lock});
    }

    void search()
    {
        enter(state::searching);
        send(first, {request::kind::confirm});
        send(second, {request::kind::children, plan().lock});
    }

    void list()
    {
        enter(state::listing);
        send(first, {listing(), plan().lock});
    }

    [[nodiscard]] request::kind listing() const noexcept
    {
        return plan().once ? request::kind::children : request::kind::watch_children;
    }

    void take(unsigned slot, reply const& r) override
    {
        if (state_ == state::creating && slot == first) return take_created(r);
        if (state_ == state::creating && slot >= first_parent) return parents_.answered(slot - first_parent, r);
        if (r.undecided()) return stall();
        if (r.what == answer::refused) return fail(r.code);
        switch (state_) {
        case state::looking: return r.what == answer::ok ? take_look() : make_parent(plan().lock);
        case state::searching: return take_found(r);
        case state::checking: return take_checked(r);
        default: return count(r);
        }
    }

    void take_look()
    {
        know_list();
        create();
    }

    void take_created(reply const& r)
    {
        in_doubt_ = r.what == answer::lost;
        if (r.what == answer::ok) {
            made_ = true;
            node_ = leaf_of(r.text);
            czxid_ = r.stat.czxid;
            parents_.forget();
        } else if (r.what == answer::no_node) {
            make_parent(plan().lock);
        } else if (r.what == answer::refused) {
            fail(r.code);
        } else {
            next_round();
            stall();
        }
    }

    void take_found(reply const& r)
    {
        auto const found = std::find_if(r.children.begin(), r.children.end(),
                                        [ours = prefix()](std::string const& one) { return one.starts_with(ours); });
        if (found == r.children.end()) return create();
        node_ = *found;
        enter(state::checking);
        send(first, {request::kind::data, node_path()});
    }

    void take_checked(reply const& r)
    {
        in_doubt_ = false;
        if (r.what != answer::ok) return create();
        made_ = true;
        czxid_ = r.stat.czxid;
        parents_.forget();
        list();
    }

    void count(reply const& r)
    {
        know_list();
        if (std::find(r.children.begin(), r.children.end(), node_) == r.children.end()) {
            id_ = plan().tokens();
            return create();
        }
        if (r.children.size() <= max_) return grant();  // all count, whatever their names
        if (plan().once) return fail(make_error_code(holdfast::errc::timed_out));
        state_ = state::waiting;  // in the same round: the notice has its tag
    }

    void look_again() override { list(); }

    std::size_t max_;
    std::string node_;
    bool begun_ = false;
};

}  // namespace holdfast::zookeeper
