// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/zookeeper/session_operation.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The nodes that a session watches, by their paths, and which operations wait for each. A node that no operation waits
/// for stays in the list until its watch is removed: server and C client keep the watch for as long as the node is
/// there.
class watch_list {
public:
    /// The most bytes that the paths have together. The C client names them all in one request when it reconnects. A
    /// server refuses that from about 1 MB on (`jute.maxbuffer`), and then every time.
    static constexpr std::size_t most_bytes = 512UL * 1'024;

    struct waiter {
        session_operation* who;
        unsigned tag;
    };

    /// Effects: `who` waits for the node at `path`, and for no other one. Returns: false if the paths would then have
    /// more than `most_bytes`, and `who` does not wait.
    [[nodiscard]] bool add(session_operation& who, unsigned tag, std::string const& path)
    {
        remove(who);
        auto node = nodes_.find(path);
        if (node == nodes_.end()) {
            if (bytes_ + size_of(path) > most_bytes) return false;
            node = nodes_.try_emplace(path).first;
            bytes_ += size_of(path);
        }
        who.watched_ = path;
        node->second.push_back({&who, tag});  // last: what it names would have to be removed
        return true;
    }

    /// Effects: `who` no longer waits for a node. Returns: the path of the one that it waited for; empty for none.
    std::string remove(session_operation& who) noexcept
    {
        auto path = std::exchange(who.watched_, {});
        if (auto const node = nodes_.find(path); node != nodes_.end())
            std::erase_if(node->second, [&](waiter const& one) { return one.who == &who; });
        return path;
    }

    /// Effects: the watch of the node at `path` has fired. Returns: the operations that waited for it.
    std::vector<waiter> take(std::string_view path) noexcept
    {
        auto const node = nodes_.find(path);
        if (node == nodes_.end()) return {};
        auto waiters = std::move(node->second);
        bytes_ -= size_of(path);
        nodes_.erase(node);
        for (auto const& one : waiters) one.who->watched_.clear();
        return waiters;
    }

    /// Effects: the watch that `who` asked for with `tag` was not set, if it still waits for it.
    void fail(session_operation* who, unsigned tag, std::string const& path) noexcept
    {
        auto const node = nodes_.find(path);
        if (node == nodes_.end()) return;
        auto const asked = [&](waiter const& one) { return one.who == who && one.tag == tag; };
        if (std::erase_if(node->second, asked) > 0) who->watched_.clear();
        forget(path);
    }

    /// Effects: forgets the node at `path`, unless an operation waits for it: it is not watched.
    void forget(std::string const& path) noexcept
    {
        if (!wanted(path)) take(path);
    }

    /// Returns: whether an operation waits for the node at `path`.
    [[nodiscard]] bool wanted(std::string const& path) const noexcept
    {
        auto const node = nodes_.find(path);
        return node != nodes_.end() && !node->second.empty();
    }

    /// Returns: the paths of the nodes that no operation waits for.
    [[nodiscard]] std::vector<std::string> unwanted() const
    {
        std::vector<std::string> paths;
        for (auto const& [path, waiters] : nodes_)
            if (waiters.empty()) paths.push_back(path);
        return paths;
    }

    /// Effects: forgets everything: the session is over.
    void clear() noexcept
    {
        while (!nodes_.empty()) take(std::string_view{nodes_.begin()->first});
    }

private:
    static std::size_t size_of(std::string_view path) noexcept { return path.size() + 4; }  // as it is sent

    std::map<std::string, std::vector<waiter>, std::less<>> nodes_;
    std::size_t bytes_ = 0;
};

}  // namespace holdfast::zookeeper
