// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The common part of the machines whose node is one of several below the lock's: an ephemeral node to whose name the
/// server adds a number. What its place among the others means is for the machine to say.
///
/// | state | sent | answer → next |
/// |---|---|---|
/// | looking | children | there, or no parent → creating; refused → failed, before anything is made |
/// | creating | create, children | made → the machine takes the children; no parent → creating, with one more container before it; create lost → searching; children lost → listing |
/// | searching | confirm, children | a node with our GUID → checking; none → creating |
/// | checking | data of that node | made by us → listing; by another session → creating with a new GUID; gone → creating |
/// | listing | children | the machine takes them |
///
/// It looks first if it is not known whether the list may be read. A client that may create but not read could not tell
/// its place, and perhaps could not remove its node. A lost answer is asked for again once connected. Source:
/// "protection" as in Curator.
class queued_recipe : public acquire_machine {
public:
    using acquire_machine::acquire_machine;

    /// Returns: the path of our node. Requires: it is known.
    [[nodiscard]] std::string node_path() const { return plan().lock + '/' + node_; }

    [[nodiscard]] leftover what_is_left() const override
    {
        return {plan().lock, prefix(),          made_ ? node_path() : std::string{}, made_ ? czxid_ : 0, {},
                session(),   parents_.missing()};
    }

protected:
    /// Returns: how the name of our node begins; only ours does.
    [[nodiscard]] virtual std::string prefix() const = 0;

    /// Returns: by which request the nodes are listed.
    [[nodiscard]] virtual request::kind listing() const noexcept { return request::kind::children; }

    /// Effects: takes the list of the nodes, made after ours.
    virtual void take_children(reply const& r) = 0;

    /// Effects: asks for the list of the nodes, and first, in the slot `beside`, for what a machine reads beside it.
    virtual void ask_for_list() { send(second, {listing(), plan().lock}); }

    /// Effects: takes the answer in the slot `beside`.
    virtual void take_beside(reply const& /*r*/) {}

    /// Effects: takes the answer in a state of the machine's own.
    virtual void take_more(unsigned /*slot*/, reply const& /*r*/) {}

    void start_over() override
    {
        id_ = plan().tokens();                 // mutant: ephemeralOwner not checked, the GUID kept in a new session
        if (plan().look_first && !may_read())  // mutant: a place taken without a look at the list
            ask_for_line(state::looking);
        else
            create();
    }

    /// Effects: asks for the list of the nodes.
    void list()
    {
        enter(state::listing);
        ask_for_list();
    }

    void look_again() override
    {
        list();  // mutant: first once the one before is gone
    }

    /// Effects: waits for the notice of the watch that was set in this round, which has its tag.
    void wait() noexcept { state_ = state::waiting; }

    /// The name of ours, if it is known.
    std::string node_;  // mutant: ephemeralOwner not checked

private:
    void resume() override
    {
        if (made_)
            list();
        else if (in_doubt_)
            search();  // mutant: create repeated blindly
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
        ask_for_list();
    }

    void search() { look_for({request::kind::children, plan().lock}); }

    void take(unsigned slot, reply const& r) override
    {
        if (slot == beside) return take_beside(r);
        if (state_ == state::creating && slot == first) return take_created(r);
        switch (state_) {
        case state::looking: return r.what == answer::ok ? take_look() : make_parent(plan().lock);
        case state::searching: return take_found(r);
        case state::checking: return take_checked(r);
        case state::creating:
        case state::listing: know_list(); return take_children(r);
        default: return take_more(slot, r);
        }
    }

    void take_created(reply const& r)
    {
        if (r.what != answer::ok) return make_parent(plan().lock);
        node_ = leaf_of(r.text);
        have(r);
    }

    void take_look()
    {
        know_list();
        create();
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
        if (r.stat.owner != session()) return start_over();  // mutant: ephemeralOwner not checked
        have(r);
        list();
    }
};

}  // namespace holdfast::zookeeper
