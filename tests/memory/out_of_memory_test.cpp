// SPDX-License-Identifier: MIT
//
// Memory that runs out in any step of a waiter. A sanitizer brings an operator new of its own.
#include "support/refused_memory.hpp"

#ifndef HOLDFAST_SANITIZED

#include "conformance/sleeper.hpp"
#include "support/catch.hpp"

#include <holdfast/memory.hpp>

#include <chrono>
#include <mutex>

using namespace std::chrono_literals;
using holdfast::memory::mutex;
using holdfast::memory::store;
using holdfast::test::sleeper;

TEST_CASE("a waiter whose memory runs out in any step leaves the line, and the next one is woken")
{
    store here;
    store there = here.another_client();
    store elsewhere = here.another_client();
    mutex holder{here, "orders"};
    mutex fails{there, "orders"};
    mutex next{elsewhere, "orders"};
    std::unique_lock hold{holder};
    auto const refused = holdfast::test::refuse_each_request(
        holdfast::test::whose::this_threads, 1, [&] { static_cast<void>(fails.try_lock_for(5ms)); },
        [&] {
            sleeper waits{[&] {
                bool const got = next.try_lock_for(8s);  // whoever sleeps looks again after ten seconds
                next.unlock();
                return got;
            }};
            CHECK(waits.sleeps());
            hold.unlock();
            CHECK(waits.join());
            hold.lock();
        });
    CHECK(refused > 3);
}

#endif
