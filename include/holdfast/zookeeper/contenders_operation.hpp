// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/zookeeper/line_operation.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/opened.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Asks which clients have a lock or wait for it.
class contenders_operation final : public line_operation<participants> {
public:
    using line_operation::line_operation;

private:
    void on_line(participants line, std::size_t) override { end(std::move(line)); }
};

/// Asks which client has a lock, or also which ones wait for it, as every store says it.
class inspect_operation final : public line_operation<lock_report> {
public:
    using line_operation::line_operation;

private:
    void on_line(participants line, std::size_t rest) override
    {
        lock_report all{.knows_waiters = true};
        if (!line.empty()) all.lease = lease_of(line.front());
        for (auto const& one : line) {
            lock_contender who;
            read_content(one.content, who);
            who.fencing_token = one.fencing_token;
            who.since = one.since;
            if (&one == &line.front())
                all.holder = lock_holder{std::move(who), {}, line.size() - 1 + rest, asks_for_release(one.content)};
            else
                all.waiters.push_back(std::move(who));
        }
        end(std::move(all));
    }

    /// Returns: what no other lease has, of whichever servers: names in a queue have a GUID, and in the plain form the
    /// content has.
    [[nodiscard]] static std::string lease_of(participant const& one)
    {
        auto const said = words_of_owner(one.content);
        return (one.node + ' ' + std::to_string(one.fencing_token)).append(said.substr(place_of_id(said)));
    }
};

/// Deletes the node of the client that has the lock.
class force_release_operation final : public line_operation<bool> {
public:
    using line_operation::line_operation;

private:
    void on_line(participants line, std::size_t) override
    {
        auto const node =
            line.empty() ? std::string{} : path_of(line.front()) + std::to_string(line.front().fencing_token);
        // Asked again, because the answer was lost, after the node has gone: that was it, or its owner gave it back.
        // mutant: a force that is repeated deletes whichever node is first
        if (node.empty() || (!first_.empty() && node != first_)) return end(!first_.empty());
        first_ = node;
        in_doubt_ = true;
        change({request::kind::erase, path_of(line.front())});
    }

    void on_changed(reply const&) override { end(true); }

    std::string first_;  // the node that was to be deleted
};

/// Writes to the node of the client that has the lock that it is asked to release it.
class request_release_operation final : public line_operation<bool> {
public:
    using line_operation::line_operation;

private:
    void on_line(participants line, std::size_t) override
    {
        if (line.empty()) return end(false);
        change({request::kind::write, path_of(line.front()), asking_for_release(line.front().content)});
    }

    /// If the node has gone, there may be another reader, or the next holder.
    void on_changed(reply const& r) override
    {
        if (r.what == answer::ok || !ask_again()) end(r.what == answer::ok);
    }
};

}  // namespace holdfast::zookeeper
