// SPDX-License-Identifier: MIT
//
// Memory that runs out in any step of a waiter. A sanitizer brings an operator new of its own.
#include "support/refused_memory.hpp"
#include "support/refusing_new.hpp"

#ifndef HOLDFAST_SANITIZED

#include "conformance/sleeper.hpp"
#include "support/catch.hpp"

#include <holdfast/core/access.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/memory.hpp>
#include <holdfast/memory/data.hpp>
#include <holdfast/memory/watcher.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::access;
using holdfast::boot_clock;
using holdfast::leased_permit;
using holdfast::memory::mutex;
using holdfast::memory::semaphore;
using holdfast::memory::store;
using holdfast::test::sleeper;

namespace {

/// A waiter that counts how often it is woken.
class counting_watcher final : public holdfast::memory::watcher {
public:
    void wake() noexcept override { ++woken; }
    void forget() noexcept override {}

    int woken = 0;
};

/// Returns: how many requests for memory `f` makes. Each is refused once.
template <class F>
long requests_of(F f)
{
    return holdfast::test::refuse_each_request(holdfast::test::whose::this_threads, 1, f, [] {});
}

}  // namespace

TEST_CASE("a lock is given back by an unlock that gets no memory, and its waiter gets it or is told")
{
    store here;
    store elsewhere = here.another_client();
    mutex holder{here, "orders"};
    mutex next{elsewhere, "orders"};
    std::optional<sleeper> waits;
    auto const lock_before_another = [&] {
        holder.lock();
        waits.emplace([&] {
            try {
                bool const got = next.try_lock_for(8s);  // whoever sleeps looks again after ten seconds
                next.unlock();
                return got;
            } catch (std::exception const&) {
                return true;  // the thread that unlocks asks for it, and gets no memory
            }
        });
        CHECK(waits->sleeps());
    };
    lock_before_another();
    holdfast::test::refuse_each_request(
        holdfast::test::whose::this_threads, 1, [&] { holder.unlock(); },
        [&] {
            CHECK(waits->join());
            lock_before_another();
        });
    holder.unlock();
    CHECK(waits->join());
}

TEST_CASE("no memory is needed to wake the first waiter, or all if one of them may be a reader")
{
    auto const mode = GENERATE(access::sole, access::exclusive);
    int const all = mode == access::exclusive ? 1 : 0;  // how often the others are woken with the first
    holdfast::memory::data leases;
    holdfast::lock_key const key{"orders", "", mode};
    auto const token = holdfast::owner_token::fresh();
    auto const take = [&] {
        auto const now = boot_clock::now();
        REQUIRE(leases.acquire("orders", {.mode = mode, .token = token}, 0, now, now + 1h).granted);
    };
    std::array<std::shared_ptr<counting_watcher>, 3> line;
    std::array<holdfast::memory::data::waiters::iterator, 3> places;
    for (std::size_t i = 0; i < line.size(); ++i) {
        line[i] = std::make_shared<counting_watcher>();
        places[i] = leases.watch(key, line[i]);
    }
    auto const woken = [&] { return std::array{line[0]->woken, line[1]->woken, line[2]->woken}; };

    take();
    CHECK(requests_of([&] { leases.release(key, token, boot_clock::now()); }) == 0);
    CHECK(woken() == std::array{1, all, all});

    take();
    CHECK(requests_of([&] { leases.extend(key, token, boot_clock::now(), boot_clock::now() + 1min); }) == 0);
    CHECK(woken() == std::array{2, all + 1, all + 1});  // all of them wait for the old end

    CHECK(leases.give_back(key, token));
    CHECK(requests_of([&] { leases.wake_if_free("orders"); }) == 0);
    CHECK(woken() == std::array{3, 2 * all + 1, 2 * all + 1});

    CHECK(requests_of([&] { leases.unwatch(key, places[0]); }) == 0);
    CHECK(woken() == std::array{3, 2 * all + 2, 3 * all + 1});
    leases.unwatch(key, places[1]);
    leases.unwatch(key, places[2]);
}

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
