// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/zookeeper/node_key.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/opened.hpp>
#include <holdfast/zookeeper/question_operation.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Asks which client has a lock, or also which ones wait for it, and does something then. Of a `shared_mutex`, all is
/// asked for again if a node went before it was asked for: its hold may have another one, which the list was too early
/// for.
template <class R>
class line_operation : public question_operation<R> {
    using base = question_operation<R>;

public:
    line_operation(std::shared_ptr<session_core> in, std::shared_ptr<node_key const> key, report_of what)
        : base{std::move(in), key->name(), key->path()}, key_{std::move(key)}, what_{what}
    {
    }

protected:
    using base::end, base::fail, base::send, base::path, base::in_doubt_;

    /// Effects: acts on the line, by `end` or by `change`. If that was asked for the holder, `line` begins with it and
    /// `rest` more follow, of which some may be gone.
    virtual void on_line(participants line, std::size_t rest) = 0;

    /// Effects: acts on the answer to what was changed.
    virtual void on_changed(reply const& /*r*/) {}

    /// Effects: sends `what`, which changes something; the answer goes to `on_changed`. If that is lost, asks for the
    /// line again.
    void change(request what) { send(change_tag, std::move(what)); }

    /// Effects: asks for the line again, a few times at most, as what was found has gone. Not in the plain form, whose
    /// nodes have one path. Returns: whether it does.
    bool ask_again()
    {
        if (!key_->queued() || again_++ >= most_again) return false;
        ask();
        return true;
    }

    /// Returns: the path of the node of `who`.
    [[nodiscard]] std::string path_of(participant const& who) const
    {
        return key_->queued() ? path() + '/' + who.node : path();
    }

private:
    static constexpr unsigned list_tag = ~0U - 1;
    static constexpr unsigned change_tag = ~0U;
    static constexpr unsigned most_again = 3;

    struct place {
        std::uint32_t sequence = 0;
        bool may_be_converted = false;
        participant who;
    };

    /// In kazoo's naming, a writer's node has the name of a mutex's.
    [[nodiscard]] static bool may_be_converted(contender const& one) noexcept
    {
        return one.mode != access::sole || one.name.find("__lock__") != std::string::npos;
    }

    void ask() override
    {
        was_in_doubt_ = in_doubt_;
        line_.clear();
        asked_ = 0;
        if (key_->queued()) return send(list_tag, {request::kind::children, path()});
        line_.push_back({.sequence = 0, .who = {path()}});
        ask_for_nodes();
    }

    void on_reply(unsigned tag, reply const& r) override
    {
        if (tag == change_tag) in_doubt_ = was_in_doubt_;
        if (r.what == answer::refused) return fail(r.code);
        if (tag == change_tag) return on_changed(r);
        if (tag == list_tag) {
            for (auto& c : contenders_among(r.children))
                line_.push_back(
                    {.sequence = c.sequence, .may_be_converted = may_be_converted(c), .who = {std::move(c.name)}});
            return ask_for_nodes();
        }
        // In the plain form, a node that does not end with a session is no lock.
        if (r.what != answer::ok || !(key_->queued() || r.stat.ephemeral())) return;
        auto& who = line_.at(first_ + tag).who;
        who.content = r.text;
        who.fencing_token = first_token_of(r.stat.czxid);
        who.since = std::chrono::system_clock::time_point{std::chrono::milliseconds{r.stat.ctime}};
    }

    /// Effects: asks for the next nodes: all, or those of one sequence, of which the holder's is one if it is there.
    void ask_for_nodes()
    {
        std::vector<request> some;
        for (first_ = asked_; asked_ < line_.size(); ++asked_) {
            if (what_ == report_of::holder && line_[asked_].sequence != line_[first_].sequence) break;
            some.push_back({request::kind::data, path_of(line_[asked_].who)});
        }
        base::send_all(std::move(some));
    }

    void on_all() override
    {
        auto const gone = [](place const& one) { return one.who.fencing_token == 0; };
        auto const from = line_.begin() + static_cast<std::ptrdiff_t>(first_);
        auto const to = line_.begin() + static_cast<std::ptrdiff_t>(asked_);
        bool const converted =
            std::any_of(from, to, [&](place const& one) { return one.may_be_converted && gone(one); });
        if (converted && ask_again()) return;
        if (to != line_.end() && std::all_of(from, to, gone)) return ask_for_nodes();
        auto const rest = line_.size() - asked_;
        std::erase_if(line_, gone);
        std::sort(line_.begin(), line_.end(), [](place const& a, place const& b) {
            return std::pair{a.sequence, a.who.fencing_token} < std::pair{b.sequence, b.who.fencing_token};
        });
        participants all;
        for (auto& one : line_) all.push_back(std::move(one.who));
        on_line(std::move(all), rest);
    }

    std::shared_ptr<node_key const> const key_;
    report_of const what_;
    std::vector<place> line_;    // in the order of their sequences
    std::size_t first_ = 0;      // of those whose nodes are asked for
    std::size_t asked_ = 0;      // how many were, or are
    unsigned again_ = 0;         // how often it was asked for again
    bool was_in_doubt_ = false;  // a change was lost before all was asked for again
};

}  // namespace holdfast::zookeeper
