// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
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
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Asks which client has a lock, or also which ones wait for it, and does something then.
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

    /// Returns: the path of the node of `who`.
    [[nodiscard]] std::string path_of(participant const& who) const
    {
        return key_->queued() ? path() + '/' + who.node : path();
    }

private:
    static constexpr unsigned list_tag = ~0U - 1;
    static constexpr unsigned change_tag = ~0U;

    void ask() override
    {
        was_in_doubt_ = in_doubt_;
        line_.clear();
        asked_ = 0;
        if (key_->queued()) return send(list_tag, {request::kind::children, path()});
        line_.push_back({0, {path()}});
        ask_for_nodes();
    }

    void on_reply(unsigned tag, reply const& r) override
    {
        if (tag == change_tag) in_doubt_ = was_in_doubt_;
        if (r.what == answer::refused) return fail(r.code);
        if (tag == change_tag) return on_changed(r);
        if (tag == list_tag) {
            for (auto& c : contenders_among(r.children)) line_.push_back({c.sequence, {std::move(c.name)}});
            return ask_for_nodes();
        }
        // In the plain form, a node that does not end with a session is no lock.
        if (r.what != answer::ok || !(key_->queued() || r.stat.ephemeral())) return;
        auto& who = line_.at(first_ + tag).second;
        who.content = r.text;
        who.fencing_token = first_token_of(r.stat.czxid);
        who.since = std::chrono::system_clock::time_point{std::chrono::milliseconds{r.stat.ctime}};
    }

    /// Effects: asks for the next nodes: all, or those of one sequence, of which the holder's is one if it is there.
    void ask_for_nodes()
    {
        std::vector<request> some;
        for (first_ = asked_; asked_ < line_.size(); ++asked_) {
            if (what_ == report_of::holder && line_[asked_].first != line_[first_].first) break;
            some.push_back({request::kind::data, path_of(line_[asked_].second)});
        }
        base::send_all(std::move(some));
    }

    void on_all() override
    {
        auto const there = [](auto const& one) { return one.second.fencing_token != 0; };  // not gone meanwhile
        if (asked_ != line_.size() && std::none_of(line_.begin(), line_.end(), there)) return ask_for_nodes();
        auto const rest = line_.size() - asked_;
        std::erase_if(line_, std::not_fn(there));
        std::sort(line_.begin(), line_.end(), [](auto const& a, auto const& b) {
            return std::pair{a.first, a.second.fencing_token} < std::pair{b.first, b.second.fencing_token};
        });
        participants all;
        for (auto& one : line_) all.push_back(std::move(one.second));
        on_line(std::move(all), rest);
    }

    std::shared_ptr<node_key const> const key_;
    report_of const what_;
    std::vector<std::pair<std::uint32_t, participant>> line_;  // in the order of their sequences
    std::size_t first_ = 0;                                    // of those whose nodes are asked for
    std::size_t asked_ = 0;                                    // how many were, or are
    bool was_in_doubt_ = false;                                // a change was lost before all was asked for again
};

}  // namespace holdfast::zookeeper
