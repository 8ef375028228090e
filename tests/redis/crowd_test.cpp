// SPDX-License-Identifier: MIT
//
// What a section costs the servers when many clients want one lock: counts, no times.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::test::calls;
using holdfast::test::lock_requests;
using holdfast::test::redis_fleet;

namespace {

constexpr int clients = 8;
constexpr int sections_of_each = 40;

/// What each of the servers did for a section, on the average.
struct work {
    double scripts = 0;
    double messages = 0;  ///< that it was asked to publish: who is called, and who hears of releases
};

/// Effects: eight clients, each of its own making, have the lock forty times each.
template <class Make>
work work_for_a_section(redis_fleet& servers, Make const& make)
{
    std::atomic<int> inside{0};
    std::atomic<bool> alone{true};
    bool begun = false;
    std::barrier all{clients, [&]() noexcept {
                         if (std::exchange(begun, true)) return;
                         for (auto& server : servers) server.command({"CONFIG", "RESETSTAT"});
                     }};
    std::vector<std::jthread> threads;
    for (int i = 0; i < clients; ++i)
        threads.emplace_back([&] {
            auto const client = make();
            holdfast::mutex m{*client, "orders", {.ttl = 1h, .unavailable_after = 5min}};
            m.lock();  // it knows the scripts, and where it is called
            m.unlock();
            all.arrive_and_wait();
            for (int n = 0; n < sections_of_each; ++n) {
                m.lock();
                if (++inside != 1) alone = false;
                std::this_thread::yield();
                --inside;
                m.unlock();
            }
            all.arrive_and_wait();
        });
    threads.clear();
    CHECK(alone);
    double const sections = clients * sections_of_each * static_cast<double>(servers.size());
    work all_work;
    for (auto& server : servers) {
        all_work.scripts += static_cast<double>(lock_requests(server)) / sections;
        all_work.messages += static_cast<double>(calls(server, "publish")) / sections;
    }
    return all_work;
}

}  // namespace

TEST_CASE("in a crowd one Redis runs a few scripts for a section")
{
    redis_fleet servers{1};
    auto const did = work_for_a_section(servers, [&] {
        return std::make_shared<holdfast::redis::client>(servers[0].url(), holdfast::test::unhurried());
    });
    CAPTURE(did.scripts, did.messages);
    CHECK(did.scripts <= 6);
    CHECK(did.messages <= 4);
}

TEST_CASE("in a crowd each of five masters runs a few scripts for a section")
{
    redis_fleet servers{5};
    auto const did = work_for_a_section(servers, [&] {
        return std::make_shared<holdfast::redlock::masters>(
            servers.urls(),
            holdfast::redlock::masters_options{.node_timeout = 10s, .connect_timeout = 1min, .restart_guard = 0ms});
    });
    CAPTURE(did.scripts, did.messages);
    CHECK(did.scripts <= 5);
    CHECK(did.messages <= 4);
}
