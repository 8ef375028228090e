// SPDX-License-Identifier: MIT
#pragma once

#include "../check/leftovers.hpp"

#include <support/eventually.hpp>
#include <support/zookeeper_server.hpp>
#include <support/zookeeper_tree.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace holdfast::faults {

/// Returns: the nodes below `path`, after `limit` at most for them to go.
[[nodiscard]] inline remains remains_below(std::string const& path, std::string const& servers,
                                           std::chrono::milliseconds limit)
{
    test::zookeeper_tree tree{servers};
    remains left{.keys = {"nobody could look below " + path}};
    static_cast<void>(test::eventually(
        [&] {
            try {
                left.keys = tree.children(path);
            } catch (std::runtime_error const&) {  // an ensemble that is electing once more: it is asked again
                return false;
            }
            return left.keys.empty();
        },
        limit));
    return left;
}

/// Returns: the leader, where it has requests to decide on and decides nothing for three seconds. ZooKeeper 3.8.0 may
/// get into that when its followers come back to a leader that they left a moment ago: what it proposed meanwhile is
/// never acknowledged.
[[nodiscard]] inline std::optional<std::size_t> jammed(test::zookeeper_ensemble& servers)
{
    auto const line = [](std::string const& said, std::string const& what) {
        auto const at = said.find(what);
        return at == std::string::npos ? std::string{} : said.substr(at, said.find('\n', at) - at);
    };
    for (std::size_t i = 0; i < servers.size(); ++i) {
        if (!servers[i].leads()) continue;
        auto const before = servers[i].ask("srvr");
        std::this_thread::sleep_for(std::chrono::seconds{3});
        auto const after = servers[i].ask("srvr");
        bool const waits = !line(after, "Outstanding: ").empty() && line(after, "Outstanding: ") != "Outstanding: 0";
        if (waits && !line(after, "Zxid: ").empty() && line(after, "Zxid: ") == line(before, "Zxid: ")) return i;
    }
    return std::nullopt;
}

}  // namespace holdfast::faults
