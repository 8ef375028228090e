// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Removes a node, until that is confirmed or its session is over. Then it removes the containers that were made for
/// the node, unless the node was there: the servers collect a container only after it had a child.
///
/// | state | sent | answer → next |
/// |---|---|---|
/// | searching | confirm, children | a node that begins with the prefix → erasing; none → done |
/// | checking | confirm, data | the node is ours → erasing; another's, or gone → done (`not_owner`) |
/// | erasing | erase | ok → done; gone → done, `not_owner` if no erase was sent before |
/// | any | | refused → settled, with the reason; tried again, at longer and longer intervals, as the node keeps the lock taken |
/// | clearing | data of the lowest container | a container → erase it; gone → the one above it; anything else → done |
/// | clearing | erase | ok, gone → the one above it; it has a child, or refused → done |
///
/// Only a node at the lock's own path is checked: no other client makes a node with our other names. A lost answer is
/// asked for again. If the answer to the confirm is lost, the one after it proves nothing. Why no other client's node
/// is removed, and what is not covered: docs/proofs.md, "A node that is removed".
class erase_machine {
public:
    explicit erase_machine(leftover what) : what_{std::move(what)} {}

    /// Returns: whether the node is gone, or will go with its session, and nothing is left to do.
    [[nodiscard]] bool done() const noexcept { return done_; }
    /// Returns: whether there is an outcome: it is done, or was refused, or only containers are left and no server can
    /// be asked.
    [[nodiscard]] bool settled() const noexcept { return done_ || refused_ || (clearing_ && stalled_); }
    [[nodiscard]] bool refused() const noexcept { return refused_; }
    [[nodiscard]] std::error_code outcome() const noexcept { return outcome_; }
    [[nodiscard]] bool asked() const noexcept { return asked_; }

    void connected(std::int64_t session)
    {
        if (done_) return;
        if (!clearing_ && session != what_.session) finish({});
        if (done_) return;
        if (wait_ > 0) {
            --wait_;
            return;
        }
        if (std::exchange(stalled_, false)) begin();
    }

    void expired()
    {
        if (!clearing_) finish({});
        actions_.clear();
        stalled_ = true;
    }

    void answered(unsigned tag, reply const& r)
    {
        if (done_ || stalled_ || tag / tags != round_)
            return;  // an answer of an earlier round may come after a barrier that was not done
        tag %= tags;
        if (r.undecided()) {
            stalled_ = true;  // mutant: delete not repeated
            return;
        }
        if (tag == barrier_tag) return;
        if (clearing_) return take_container(tag, r);
        take_node(tag, r);
        if (clearing_ && !done_) begin();
    }

    [[nodiscard]] std::vector<action> take_actions() noexcept { return std::exchange(actions_, {}); }

private:
    static constexpr unsigned barrier_tag = 0;
    static constexpr unsigned children_tag = 1;
    static constexpr unsigned data_tag = 2;
    static constexpr unsigned erase_tag = 3;
    static constexpr unsigned tags = 4;
    static constexpr unsigned longest_wait = 63;

    void take_node(unsigned tag, reply const& r)
    {
        if (r.what == answer::refused) {
            stalled_ = refused_ = true;
            outcome_ = r.code;
            wait_ = std::exchange(next_wait_, std::min(2 * next_wait_ + 1, longest_wait));
            return;
        }
        if (tag == children_tag) {
            auto const found = std::find_if(r.children.begin(), r.children.end(),
                                            [&](std::string const& one) { return one.starts_with(what_.prefix); });
            if (found == r.children.end()) return finish({});
            what_.node = what_.lock + '/' + *found;
            erase();
        } else if (tag == data_tag) {
            bool const ours =
                r.what == answer::ok &&
                (what_.czxid != 0 ? r.stat.czxid == what_.czxid
                                  : r.stat.owner == what_.session && was_made_with(what_.content, r.text));
            // mutant: a node at the lock's path removed without a look at whose it is
            if (!ours) return finish(erased_ ? std::error_code{} : make_error_code(holdfast::errc::not_owner));
            erase();
        } else {
            finish(r.what == answer::ok || !first_erase_ ? std::error_code{}
                                                         : make_error_code(holdfast::errc::not_owner));
        }
    }

    void take_container(unsigned tag, reply const& r)
    {
        auto& left = what_.containers;
        if (tag == data_tag && r.what == answer::ok && r.stat.owner == container_owner)
            return ask(request::kind::erase, left.back(), erase_tag);
        if (r.what == answer::no_node || (tag == erase_tag && r.what == answer::ok))
            left.pop_back();
        else
            left.clear();  // it and those above are in use, or are not ours to remove
        if (left.empty())
            done_ = true;
        else
            begin();
    }

    void begin()
    {
        asked_ = true;
        ++round_;
        if (clearing_) {
            ask(request::kind::data, what_.containers.back(), data_tag);
        } else if (what_.prefix.empty()) {
            ask(request::kind::confirm, {}, barrier_tag);
            ask(request::kind::data, what_.lock, data_tag);
        } else if (what_.node.empty()) {
            ask(request::kind::confirm, {}, barrier_tag);
            ask(request::kind::children, what_.lock, children_tag);
        } else {
            erase();
        }
    }

    void ask(request::kind what, std::string const& path, unsigned tag)
    {
        actions_.push_back({{what, path}, round_ * tags + tag});
    }

    void erase()
    {
        ask(request::kind::erase, what_.prefix.empty() ? what_.lock : what_.node, erase_tag);
        first_erase_ = !erased_;
        erased_ = true;
        what_.containers.clear();
    }

    void finish(std::error_code outcome)
    {
        if (done_) return;
        clearing_ = !what_.containers.empty();  // mutant: a container without a child left
        done_ = !clearing_;
        outcome_ = outcome;
        actions_.clear();
    }

    leftover what_;
    unsigned round_ = 0;
    bool stalled_ = true;
    bool asked_ = false;
    bool erased_ = false;
    bool first_erase_ = false;
    bool refused_ = false;
    bool clearing_ = false;  // the node is gone
    unsigned wait_ = 0;      // how often it skips a chance to go on, after a refusal
    unsigned next_wait_ = 0;
    bool done_ = false;
    std::error_code outcome_;
    std::vector<action> actions_;
};

}  // namespace holdfast::zookeeper
