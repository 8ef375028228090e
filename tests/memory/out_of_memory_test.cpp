// SPDX-License-Identifier: MIT
//
// Memory that runs out in any step of a waiter. A sanitizer brings an operator new of its own.
#include "support/refused_memory.hpp"

#ifndef HOLDFAST_SANITIZED

#include "conformance/sleeper.hpp"
#include "support/catch.hpp"

#include <holdfast/memory.hpp>

#include <array>
#include <chrono>
#include <mutex>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::leased_permit;
using holdfast::memory::mutex;
using holdfast::memory::semaphore;
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

TEST_CASE("a thread whose memory runs out in any step of a wait for a permit holds none, and waits for none")
{
    store here;
    store there = here.another_client();
    semaphore holder{here, "jobs", 2};
    semaphore fails{there, "jobs", 2};
    std::array<leased_permit, 2> held{leased_permit{holder}, leased_permit{holder}};
    auto const refused = holdfast::test::refuse_each_request(
        holdfast::test::whose::this_threads, 1, [&] { static_cast<void>(fails.try_acquire_for(5ms)); },
        [&] {
            store elsewhere = here.another_client();
            semaphore next{elsewhere, "jobs", 2};
            sleeper waits{[&] { return leased_permit{next, 8s}.owns_permit(); }};  // it looks again after ten seconds
            CHECK(waits.sleeps());
            held[0].release();
            CHECK(waits.join());
            held[0] = leased_permit{holder, 1min};
            CHECK(held[0]);
        });
    CHECK(refused > 10);
}

TEST_CASE("a thread whose memory runs out while it takes a free permit holds it or leaves it free")
{
    store here;
    store there = here.another_client();
    semaphore fails{here, "jobs", 2};
    semaphore others{there, "jobs", 2};
    auto const refused = holdfast::test::refuse_each_request(
        holdfast::test::whose::this_threads, 1, [&] { fails.acquire(); },
        [&] {
            std::error_code ec;
            fails.release(ec);
            std::array<leased_permit, 2> const all{leased_permit{others, 1min}, leased_permit{others, 1min}};
            CHECK((all[0] && all[1]));
        });
    CHECK(refused > 3);
}

TEST_CASE("a thread whose memory runs out while it takes or gives back several permits holds all or none")
{
    store here;
    store there = here.another_client();
    semaphore fails{here, "jobs", 3};
    semaphore others{there, "jobs", 3};
    auto const refused = holdfast::test::refuse_each_request(
        holdfast::test::whose::this_threads, 1,
        [&] {
            holdfast::leased_permits two{fails, 2};
            std::error_code ec;
            two.release(ec);
        },
        [&] {
            holdfast::leased_permits const all{others, 3, 1min};
            CHECK(all.still_held());
        });
    CHECK(refused > 6);
}

#endif
