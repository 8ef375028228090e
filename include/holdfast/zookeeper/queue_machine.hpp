// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquirer.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

/// Takes a lock by a place in its queue: an ephemeral node of which the server makes the last part of the name; whose number is the least
/// has the lock, each other one waits for the one before it.
///
/// | state     | sent                               | answer → next |
/// |-----------|------------------------------------|---------------|
/// | looking   | children                           | there, or no parent → creating; refused → failed, before anything is made |
/// | creating  | create, children                   | made, children → judge; no parent → creating, with one more container before it; create lost → searching; children lost → listing |
/// | searching | confirm, children                  | a node with our GUID → checking; none → creating |
/// | checking  | data of that node                  | made by us → judge; by somebody else → creating with a new GUID; gone → creating |
/// | listing   | children                           | judge |
/// | tied      | data of all with our sequence      | judge by czxid |
/// | watching  | data of the one before, with watch | gone → listing; there → waiting |
/// | waiting   | –                                  | the notice → listing |
///
/// It looks first where nobody knows whether the list may be read: who may create but not read could not tell his place, and perhaps not
/// remove his node.
///
/// judge: our node is gone → creating with a new GUID; it is the first → granted; not, and once → failed (`timed_out`); otherwise →
/// watching the one before it. An answer that was lost is asked for again once connected; after the end of the session all begins again.
/// That our node is first stays so: whatever is made later has a larger sequence, or, where the sequence is exhausted, a larger czxid.
/// Source: the lock recipe of ZooKeeper's documentation; "protection" as in Curator.
class queue_machine final : public acquirer {
public:
    queue_machine(acquire_plan plan, naming as) : acquirer{std::move(plan)}, naming_{as} {}

    [[nodiscard]] std::string node_path() const { return plan().lock + '/' + node_; }

    [[nodiscard]] remains what_is_left() const override
    {
        return {plan().lock, prefix(), made_ ? node_path() : std::string{}, made_ ? czxid_ : 0, {}, session(), parents_.missing()};
    }

private:
    enum class state { looking, creating, searching, checking, listing, tied, watching, waiting };
    static constexpr unsigned first = 0;
    static constexpr unsigned second = 1;
    static constexpr std::size_t most_at_once = 1'000;

    [[nodiscard]] std::string prefix() const { return node_prefix(naming_, id_); }

    void start_over() override
    {
        id_ = plan().tokens();
        if (plan().look_first && !may_read())
            look();
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
            look();
        else
            create();
    }

    void look()
    {
        enter(state::looking);
        send(second, {request::kind::children, plan().lock});
    }

    void create()
    {
        enter(state::creating);
        made_ = false;
        in_doubt_ = true;
        send_create({request::kind::create_sequential, plan().lock + '/' + prefix(), plan().content});
        send(second, {request::kind::children, plan().lock});
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
        send(second, {request::kind::children, plan().lock});
    }

    void take(unsigned slot, reply const& r) override
    {
        if (r.what != answer::lost && r.what != answer::postponed) reach();
        if (state_ == state::creating && slot == first) return take_created(r);
        if (state_ == state::creating && slot >= first_parent) return parents_.answered(slot - first_parent, r);
        if (r.what == answer::lost || r.what == answer::postponed) {
            if (state_ == state::searching) next_round();  // what comes behind a barrier that was not done says nothing
            return stall();
        }
        if (state_ == state::searching && slot == first) return;  // what counts is what came behind it
        if (r.what == answer::refused) return fail(r.code);
        switch (state_) {
        case state::looking: return r.what == answer::ok ? take_look() : make_parent();
        case state::creating:
        case state::listing: return take_children(r);
        case state::searching: return take_found(r);
        case state::checking: return take_checked(r);
        case state::tied: return take_tied(slot, r);
        case state::watching: return r.what == answer::ok ? enter_waiting() : list();
        default: return;
        }
    }

    void take_created(reply const& r)
    {
        if (r.what == answer::ok) node_ = leaf_of(r.text);  // before anything says that it is known: there may be no memory for it
        in_doubt_ = r.what == answer::lost;
        if (r.what == answer::ok) {
            made_ = true;
            czxid_ = r.stat.czxid;
            parents_.forget();
        } else if (r.what == answer::no_node) {
            make_parent();
        } else if (r.what == answer::refused) {
            fail(r.code);
        } else {
            next_round();
            stall();
        }
    }

    void make_parent()
    {
        if (auto const why = parents_.go_up(plan().lock)) return fail(why);
        create();
    }

    void take_look()
    {
        know_list();
        create();
    }

    void take_children(reply const& r)
    {
        know_list();
        line_ = contenders_among(r.children);
        judge();
    }

    void take_found(reply const& r)
    {
        line_ = contenders_among(r.children);
        auto const found =
            std::find_if(line_.begin(), line_.end(), [ours = prefix()](contender const& one) { return one.name.starts_with(ours); });
        if (found == line_.end()) return create();
        node_ = found->name;
        enter(state::checking);
        send(first, {request::kind::data, node_path()});
    }

    void take_checked(reply const& r)
    {
        in_doubt_ = false;
        if (r.what != answer::ok) return create();
        if (r.stat.owner != session()) return start_over();
        made_ = true;
        czxid_ = r.stat.czxid;
        parents_.forget();
        judge();
    }

    void judge()
    {
        auto const mine = std::find_if(line_.begin(), line_.end(), [&](contender const& one) { return one.name == node_; });
        if (mine == line_.end()) return start_over();
        auto const same =
            std::equal_range(line_.begin(), line_.end(), *mine, [](auto const& a, auto const& b) { return a.sequence < b.sequence; });
        auto const before = same.first == line_.begin() ? std::string{} : std::prev(same.first)->name;
        if (same.second - same.first == 1) return settle(before);
        tied_.clear();
        for (auto one = same.first; one != same.second; ++one)
            if (one != mine) tied_.push_back({one->name, 0});
        before_ties_ = before;
        asked_ = 0;
        ask_tied();
    }

    /// Effects: asks for some of those that are tied, however many there are: a round has a tag for each of them.
    void ask_tied()
    {
        enter(state::tied);
        open_ = std::min(tied_.size() - asked_, most_at_once);
        for (unsigned i = 0; i < open_; ++i) send(i, {request::kind::data, plan().lock + '/' + tied_[asked_ + i].name});
    }

    void take_tied(unsigned slot, reply const& r)
    {
        tied_.at(asked_ + slot).czxid = r.what == answer::ok ? r.stat.czxid : 0;
        if (--open_ > 0) return;
        asked_ = std::min(tied_.size(), asked_ + most_at_once);
        if (asked_ < tied_.size()) return ask_tied();
        tie const* before = nullptr;
        for (auto const& one : tied_)
            if (one.czxid != 0 && one.czxid < czxid_ && (!before || one.czxid > before->czxid)) before = &one;
        settle(before ? before->name : before_ties_);
    }

    /// Effects: `before` is the one before us; empty for none.
    void settle(std::string const& before)
    {
        if (before.empty()) return grant();
        if (plan().once) return fail(make_error_code(holdfast::errc::timed_out));
        enter(state::watching);
        send(first, {request::kind::watch, plan().lock + '/' + before});
    }

    void wake() override
    {
        if (state_ == state::watching || state_ == state::waiting) list();
    }

    void enter_waiting() { state_ = state::waiting; }  // in the same round: the notice has its tag

    void enter(state next)
    {
        state_ = next;
        next_round();
    }

    struct tie {
        std::string name;
        std::int64_t czxid;
    };

    naming naming_;
    state state_ = state::creating;
    std::string node_;
    std::vector<contender> line_;
    std::vector<tie> tied_;
    std::string before_ties_;
    std::size_t asked_ = 0;  // of those that are tied, in earlier rounds
    std::size_t open_ = 0;   // and in this one, without an answer
};

}  // namespace holdfast::zookeeper
