// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/core/announcer.hpp>
#include <holdfast/core/error.hpp>
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
