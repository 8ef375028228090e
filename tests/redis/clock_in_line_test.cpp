// SPDX-License-Identifier: MIT
//
// The clock of the server is set while clients wait.
#include "conformance/sleeper.hpp"
#include "line_of_orders.hpp"
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"
#include "support/wall_clock.hpp"

#include <holdfast/redis.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::fair_mutex;
using holdfast::redis::mutex;
using holdfast::test::eventually;
using holdfast::test::nothing_left;
using holdfast::test::redis_server;
using holdfast::test::sleeper;
using holdfast::test::unhurried;
using holdfast::test::waiters;

TEMPLATE_TEST_CASE("whichever way the clock of the server is set, those that wait exclude each other and are served",
                   "", mutex, fair_mutex)
{
    // By more than an hour the server forgets the queue, too.
    auto const jump = GENERATE(10min, -10min, 130min, -130min);
    CAPTURE(jump.count());
    holdfast::test::temporary_folder const folder;
    holdfast::test::wall_clock clock{folder.path() / "offset"};
    redis_server server{{.environment = clock.environment()}};
    auto options = holdfast::test::for_ever();
    options.ttl = 24h;  // longer than any jump
    constexpr int count = 5;
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i < count; ++i) clients.push_back(std::make_unique<client>(server.url(), unhurried()));
    client here{server.url(), unhurried()};
    TestType held{here, "orders", options};
    std::atomic<int> inside{0};
    std::atomic<bool> alone{true};
    std::uint64_t last = 0;
    for (bool const there : {true, false}) {
        held.lock();
        CHECK(held.lease().fencing_token() > last);
        last = held.lease().fencing_token();
        auto const second = server.command({"TIME"}).elements.at(0).text;
        inside = 1;
        std::mutex guard;
        std::vector<std::uint64_t> tokens;
        std::vector<std::unique_ptr<sleeper>> all;
        for (auto& one : clients)
            all.push_back(std::make_unique<sleeper>([&] {
                TestType m{*one, "orders", options};
                std::scoped_lock const hold{m};
                if (++inside != 1) alone = false;
                {
                    std::scoped_lock const one_at_a_time{guard};
                    tokens.push_back(m.lease().fencing_token());
                }
                std::this_thread::yield();  // time for another one to be inside, too
                if (!m.lease().still_held()) alone = false;
                --inside;
            }));
        REQUIRE(eventually([&] { return waiters(server) == count; }));
        clock.set(there ? jump : 0min);
        auto const moved = std::stoll(server.command({"TIME"}).elements.at(0).text) - std::stoll(second);
        CHECK((moved > 0) == ((there ? jump : -jump) > 0min));
        CHECK(eventually([&] { return waiters(server) == count; }));  // also if they were forgotten
        CHECK(holdfast::test::exists(server, "orders"));
        {
            std::scoped_lock const one_at_a_time{guard};
            CHECK(tokens.empty());
        }
        CHECK(held.lease().still_held());
        --inside;
        held.unlock();
        for (auto& one : all) one->join();
        CHECK(std::is_sorted(tokens.begin(), tokens.end()));
        CHECK(tokens.size() == count);
        CHECK(tokens.front() > last);
        last = tokens.back();
        CHECK(alone);
        CHECK(nothing_left(server));
    }
}
