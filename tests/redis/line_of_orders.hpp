// SPDX-License-Identifier: MIT
//
// The queue of the lock "orders" on a server, as a test sees it.
#pragma once

#include "support/connection.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/requests.hpp"

#include <holdfast/core/options.hpp>
#include <holdfast/redis/script.hpp>

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {

/// Returns: options with which no lease ends by itself. A waiter that is not called looks once a second at least.
inline lock_options for_ever()
{
    using namespace std::chrono_literals;
    return {.ttl = 1h, .retry = {.most = 100ms}, .unavailable_after = 5min};
}

/// Chooses the calls of a script, by its text or its hash.
inline request_predicate calls_of(redis::script const& s)
{
    return [text = s.text(), sha1 = std::string{s.sha1}](std::string_view request) {
        return request.find(sha1) != std::string_view::npos || request.find(text) != std::string_view::npos;
    };
}

/// Returns: those that wait for the lock "orders", in order.
inline std::vector<std::string> queue_of(redis_server& server)
{
    std::vector<std::string> all;
    for (auto const& one : server.command({"ZRANGE", "holdfast:queue:{orders}", "0", "-1"}).elements)
        all.push_back(one.text);
    return all;
}

/// Returns: whether nothing is left of the lock "orders", its queue and a reservation.
inline bool nothing_left(redis_server& server)
{
    return eventually([&] {
        return server.command({"EXISTS", "orders", "holdfast:queue:{orders}", "holdfast:next:{orders}"}).integer == 0;
    });
}

/// For whom a server reserves the lock "orders" from now on.
class reservations {
public:
    explicit reservations(redis_server& server) : server_{server}, seen_{server.port()} { seen_({"MONITOR"}); }

    /// Returns: the waiters, in the order in which they were called, one as often as it was.
    std::vector<std::string> const& so_far()
    {
        constexpr std::string_view reserves = R"("SET" "holdfast:next:{orders}" ")";
        constexpr char const* now = "until now";
        server_.command({"ECHO", now});
        for (;;) {
            auto const line = seen_.read().text;
            if (line.find(now) != std::string::npos) return all_;
            auto const at = line.find(reserves);
            if (at == std::string::npos || line.find(" lua] ") == std::string::npos) continue;
            auto const begin = at + reserves.size();
            all_.push_back(line.substr(begin, line.find('"', begin) - begin));
        }
    }

    /// Returns: how many of them were for a client that does not listen any more.
    std::size_t for_the_dead()
    {
        constexpr std::size_t inbox_digits = 16;
        std::size_t n = 0;
        for (auto const& who : so_far()) {
            auto const channel = "holdfast:wake:" + who.substr(0, inbox_digits);
            if (server_.command({"PUBSUB", "NUMSUB", channel}).elements.at(1).integer == 0) ++n;
        }
        return n;
    }

private:
    redis_server& server_;
    connection seen_;
    std::vector<std::string> all_;
};

/// Has the lock reserved for this waiter as long as it lives, if it is so now and the machine never stands still for a
/// second.
class lasting_reservation {
public:
    lasting_reservation(redis_server& server, std::string who)
        : thread_{[&server, who = std::move(who)](std::stop_token const& stop) {
              using namespace std::chrono_literals;
              for (; !stop.stop_requested(); std::this_thread::sleep_for(20ms))
                  server.command(
                      {"EVAL", "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], 1000) end",
                       "1", "holdfast:next:{orders}", who});
          }}
    {
    }

private:
    std::jthread thread_;
};

}  // namespace holdfast::test
