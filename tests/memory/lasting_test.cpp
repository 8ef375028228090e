// SPDX-License-Identifier: MIT
//
// What outlasts a store: its tokens, by a later one, and the leases of one that has a name.
#include "support/catch.hpp"

#include <holdfast/adapters/run_once.hpp>
#include <holdfast/make_store.hpp>
#include <holdfast/memory.hpp>
#include <holdfast/mutex.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

using namespace std::chrono_literals;
using holdfast::make_store;

TEST_CASE("the tokens of a store begin at the system's clock, so that those after a restart are greater")
{
    auto const clock = [] {
        auto const now = std::chrono::system_clock::now().time_since_epoch();
        return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
    };
    auto const begun = clock();
    holdfast::memory::store here;
    holdfast::memory::mutex m{here, "orders", {.max_local_handoffs = 0}};
    m.lock();
    auto const token = m.lease().fencing_token();
    CHECK(token > begun);
    CHECK(token <= clock() + 1);
}

TEST_CASE("a store with a name is kept when its last handle goes, with the jobs that it has run")
{
    CHECK(run_once(make_store("memory:jobs"), "report", 1h, [] {}));
    CHECK_FALSE(run_once(make_store("memory:jobs"), "report", 1h, [] {}));
    CHECK(run_once(make_store("memory:other jobs"), "report", 1h, [] {}));
    auto const seen = make_store("memory:jobs").holder("report");
    REQUIRE(seen);
    REQUIRE(seen->remaining);
    CHECK(*seen->remaining > 50min);
}

TEST_CASE("a child of fork that opens a store by its name has a store of its own")
{
    auto const here = make_store("memory:forks");
    holdfast::mutex m{here, "orders"};
    m.lock();
    auto const child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        holdfast::mutex first{make_store("memory:forks"), "orders"};
        holdfast::mutex second{make_store("memory:forks"), "orders"};
        ::_exit(first.try_lock() && !second.try_lock() ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(m.lease().still_held());
}
