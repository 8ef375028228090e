// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/core/announcer.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/hold_state.hpp>
#include <holdfast/core/joint_hold.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/report.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;
using holdfast::detail::announcer;
using holdfast::detail::hold_state;
using holdfast::detail::joint_hold;
using holdfast::test::eventually;

TEST_CASE("what is not told yet is told to nobody when the lock is gone")
{
    announcer calls;
    std::atomic<bool> go{false};
    std::atomic<bool> begun{false};
    std::atomic<int> told{0};
    auto options = std::make_shared<holdfast::lock_options const>(
        holdfast::lock_options{.on_error = [&](holdfast::error const&) { ++told; }});
    auto const stays = options;
    auto gone = std::make_shared<holdfast::lock_options const>(*options);
    calls.report([&] {
        begun = true;
        while (!go) std::this_thread::sleep_for(1ms);
    });
    REQUIRE(eventually([&] { return begun.load(); }));
    std::stop_source lost;
    for (auto const& one : {gone, stays}) {
        stop_tokens(&calls, announcer::kind::stop, lost);
        auto const hook = holdfast::detail::hook_of(&calls, one);
        holdfast::detail::report(hook, "orders", {make_error_code(holdfast::errc::lease_lost), "lost"});
        hook(holdfast::error{holdfast::errc::unavailable, "renewal"});
    }
    gone.reset();
    go = true;
    calls.end();
    CHECK(told == 2);
    CHECK(lost.stop_requested());
}

TEST_CASE("a request to release one of several locks counts for all, also if it came before they were together")
{
    bool const before = GENERATE(false, true);
    auto const part = std::make_shared<hold_state>();
    part->begin(1, holdfast::boot_clock::now() + 1h);
    auto const all = std::make_shared<joint_hold>(1);
    if (before) CHECK(announce_request(nullptr, *part));
    all->add(holdfast::lease{part}, all);
    CHECK(all->release_requested().stop_requested() == before);
    CHECK(announce_request(nullptr, *part) == !before);
    CHECK(all->release_requested().stop_requested());
}
