// SPDX-License-Identifier: MIT
#pragma once

#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redlock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::test {

/// Five masters without a restart guard, and a client of them that gives each a second to answer: tests run on busy machines.
struct five_masters {
    redis_fleet servers{5};
    redlock::masters client{servers.urls(), options()};

    [[nodiscard]] static redlock::masters_options options()
    {
        using std::chrono_literals::operator""ms;
        return {.node_timeout = 1000ms, .restart_guard = 0ms};
    }

    /// Returns: a client that waits no longer for a master than one would in production: for tests in which no majority can answer, or that
    /// ask again and again. On a busy machine masters that live may not answer in that time either.
    [[nodiscard]] redlock::masters impatient() const
    {
        using std::chrono_literals::operator""ms;
        return redlock::masters{servers.urls(), {.node_timeout = 100ms, .restart_guard = 0ms}};
    }

    /// Returns: on how many of the masters that can be asked the key is.
    [[nodiscard]] long copies(std::string const& key)
    {
        auto const all = servers.command({"EXISTS", key});
        return std::count_if(all.begin(), all.end(), [](reply const& r) { return r.integer == 1; });
    }

    /// Effects: locks `m`, whose key is `key`, with the votes of all masters: a lock that three have granted may not be on the others yet.
    /// Returns: whether it could.
    [[nodiscard]] bool lock_on_all(redlock::mutex& m, std::string const& key)
    {
        using namespace std::chrono_literals;
        return eventually([&] {
            if (!m.try_lock_for(30s)) return false;
            if (eventually([&] { return copies(key) == 5; }, 500ms)) return true;
            m.unlock();
            return false;
        });
    }
};

}  // namespace holdfast::test
