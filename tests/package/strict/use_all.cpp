// SPDX-License-Identifier: MIT
//
// A user's file, in which all that a compiler can warn of is an error: our headers are to give none.
#include <holdfast/holdfast.hpp>
#include <holdfast/memory.hpp>
#include <holdfast/redlock.hpp>
#ifdef USE_TLS
#include <holdfast/tls.hpp>
#endif
#ifdef USE_ZOOKEEPER
#include <holdfast/zookeeper.hpp>
#endif

#include <chrono>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <stop_token>

using namespace std::chrono_literals;

int main(int argc, char**)
{
    holdfast::memory::store here;
    holdfast::memory::mutex drafts{here, "drafts"};
    std::scoped_lock<holdfast::memory::mutex> const hold{drafts};
    holdfast::memory::semaphore jobs{here, "jobs", 2};
    if (!jobs.try_acquire_for(500ms)) return 1;
    holdfast::leased_permit const permit{jobs, 500ms};
    holdfast::leased_permits const rest{jobs, 1, std::try_to_lock};
    if (rest && jobs.permits_in_use() != 2) return 1;
    jobs.release();
    holdfast::memory::shared_mutex prices{here, "prices"};
    if (holdfast::leased_shared_lock const reading{prices, 500ms}; !reading) return 1;
    std::shared_lock<holdfast::memory::shared_mutex> const also{prices};
    if (argc < 2) return 0;

    holdfast::redlock::masters masters{{"redis://127.0.0.1:6379"}};
    holdfast::redlock::mutex orders{masters, "orders/42", {.ttl = 10s}};
    holdfast::recursive_mutex<holdfast::redlock::mutex> again{masters, "orders/43", {}};
    {
        std::scoped_lock<holdfast::redlock::mutex, holdfast::recursive_mutex<holdfast::redlock::mutex>> const both{
            orders, again};
    }
    holdfast::leased_lock<holdfast::redlock::mutex> leased{orders, 500ms};
    if (!leased) return 1;
    std::stop_callback const at_loss{leased.lost_token(), [] { std::puts("lost"); }};
    leased.extend(10s);
    holdfast::election leader{drafts, {.on_elected = [](holdfast::term const&) { std::puts("elected"); }}};
    if (leader.still_leader()) static_cast<void>(leader.resign());
#ifdef USE_ZOOKEEPER
    holdfast::zookeeper::session zk{"127.0.0.1:2181"};
    holdfast::zookeeper::mutex line{zk, "/locks/orders"};
    std::scoped_lock<holdfast::zookeeper::mutex> const first{line};
    for (auto const& who : line.contenders()) std::puts(who.content.c_str());
#endif
    auto const token = holdfast::with_lock(drafts, 500ms, [](holdfast::lease const& l) { return l.fencing_token(); });
    return token && leased.still_held() ? 0 : 1;
}
