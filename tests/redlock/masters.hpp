// SPDX-License-Identifier: MIT
#pragma once

#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redlock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::test {

/// Returns: on how many of the masters that can be asked the key is.
[[nodiscard]] inline std::size_t copies(redis_fleet& masters, std::string const& key)
{
    auto const all = masters.command({"EXISTS", key});
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](reply const& r) { return r.integer == 1; }));
}

/// Effects: locks `m`, whose key is `key`, with the votes of all masters: a lock that a majority has granted may not be
/// on the others yet, nor come there: one that is not connected yet is not asked, and one that does not know the script
/// when the others have decided is not told it.
/// Returns: whether it could, within `limit`.
[[nodiscard]] inline bool lock_on_all(redis_fleet& masters, redlock::mutex& m, std::string const& key,
                                      std::chrono::milliseconds limit = std::chrono::minutes{1})
{
    using namespace std::chrono_literals;
    return eventually([&] {
        if (!m.try_lock_for(30s)) return false;
        if (eventually([&] { return copies(masters, key) == masters.size(); }, 500ms)) return true;
        m.unlock();
        return false;
    }, limit);
}

/// Five masters without a restart guard, and a client of them that gives each ten seconds to answer: tests run on busy
/// machines. For locks with a ttl of at least 20 s.
struct five_masters {
    redis_fleet servers{5};
    redlock::masters client{servers.urls(), options()};

    [[nodiscard]] static redlock::masters_options options()
    {
        using namespace std::chrono_literals;
        return {.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms};
    }

    /// Returns: a client that waits no longer for a master than one would in production: for tests in which no majority
    /// can answer, or that ask again and again. On a busy machine masters that live may not answer in that time either.
    [[nodiscard]] redlock::masters impatient() const
    {
        using std::chrono_literals::operator""ms;
        return redlock::masters{servers.urls(), {.node_timeout = 100ms, .restart_guard = 0ms}};
    }

    [[nodiscard]] std::size_t copies(std::string const& key) { return test::copies(servers, key); }
    [[nodiscard]] bool lock_on_all(redlock::mutex& m, std::string const& key)
    {
        return test::lock_on_all(servers, m, key);
    }
};

/// Three masters behind proxies, and a client that is connected to all.
struct proxied_masters {
    redis_fleet servers{3};
    std::vector<proxy> ways;
    redlock::masters client;
    redlock::mutex probe{
        client, "invoices", {.ttl = std::chrono::hours{1}, .unavailable_after = std::chrono::minutes{5}}};

    explicit proxied_masters(std::chrono::milliseconds node_timeout = std::chrono::seconds{10})
        : client{make_ways(),
                 {.node_timeout = node_timeout,
                  .connect_timeout = std::chrono::minutes{1},
                  .restart_guard = std::chrono::milliseconds{0}}}
    {
        use();
    }

    std::vector<std::string> make_ways()
    {
        std::vector<std::string> urls;
        for (auto& server : servers) urls.push_back(ways.emplace_back(server.port()).url());
        return urls;
    }

    /// Effects: locks and frees another lock, on every master.
    void use()
    {
        REQUIRE(lock_on_all(servers, probe, "invoices"));
        probe.unlock();
    }

    [[nodiscard]] bool exists(std::size_t i, std::string const& key)
    {
        return servers[i].command({"EXISTS", key}).integer == 1;
    }
    [[nodiscard]] bool on_all(std::string const& key) { return copies(servers, key) == servers.size(); }
};

}  // namespace holdfast::test
