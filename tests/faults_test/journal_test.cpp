// SPDX-License-Identifier: MIT
#include "faults/journal.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <holdfast/core/clock.hpp>

#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using namespace holdfast::faults;
using holdfast::boot_clock;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::temporary_folder;

TEST_CASE("what a killed process has written is there, by time, with that of others")
{
    temporary_folder folder;
    journal mine{folder.path(), 1};
    mine.write({.lock = 7, .hold = 1, .what = event::acquire_begun});
    auto other = child::fork([&] {
        journal its{folder.path(), 2};
        for (std::uint32_t n = 1;; ++n) its.write({.token = n, .hold = n, .what = event::acquire_ok});
        return 0;
    });
    CHECK(eventually([&] { return read_journals(folder.path()).size() > 1000; }));
    other.kill();
    mine.write({.lock = 7, .hold = 1, .what = event::release_done});
    auto const all = read_journals(folder.path());
    REQUIRE(all.size() > 1002);
    CHECK(all.front().client == 1);
    CHECK(all.back().what == event::release_done);
    std::uint64_t next = 1;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0) REQUIRE(all[i - 1].at <= all[i].at);
        if (all[i].client == 2) REQUIRE(all[i].token == next++);
    }
}

TEST_CASE("threads of one client write into one journal")
{
    temporary_folder folder;
    journal mine{folder.path(), 1};
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::uint32_t n = 0; n < 5000; ++n) mine.write({.lock = t, .hold = n, .what = event::renewed});
        });
    threads.clear();
    CHECK(read_journals(folder.path()).size() == 20000);
}

TEST_CASE("a record that was not written to its end is left out")
{
    temporary_folder folder;
    journal mine{folder.path(), 1};
    mine.write({.what = event::none});
    mine.write({.what = event::killed});
    CHECK(read_journals(folder.path()).size() == 1);
}

TEST_CASE("a journal that is full says so")
{
    temporary_folder folder;
    journal mine{folder.path(), 1};
    for (std::size_t i = 0; i < journal::capacity; ++i) mine.write({.at = 1, .what = event::renewed});
    CHECK_THROWS_AS(mine.write({.what = event::renewed}), std::length_error);
    CHECK(read_journals(folder.path()).size() == journal::capacity);
}

TEST_CASE("points of the clock of leases keep their place among the records")
{
    auto const before = monotonic_now();
    auto const now = to_monotonic(boot_clock::now());
    auto const after = monotonic_now();
    CHECK(now >= before - 1'000'000);
    CHECK(now <= after + 1'000'000);
    CHECK(to_monotonic(boot_clock::time_point::min()) < before);
}
