// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"

#include <holdfast/election.hpp>
#include <holdfast/memory.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::election;
using holdfast::election_observer;
using holdfast::election_observer_options;
using holdfast::errc;
using holdfast::lock_holder;
using holdfast::mutex;
using holdfast::test::code_of;
using holdfast::test::eventually;

namespace {

using lines = std::vector<std::string>;

/// What an observer has told, in order: the fencing tokens of leaders, "nobody", and errors.
class log_book {
public:
    [[nodiscard]] election_observer_options options()
    {
        return {
            .on_change =
                [this](std::optional<lock_holder> const& leader) {
                    add(leader ? std::to_string(leader->fencing_token) : "nobody");
                },
            .on_error = [this](holdfast::error const& e) { add((e.over() ? "over " : "error ") + e.code().message()); },
            .interval = 1ms};
    }
    void add(std::string what)
    {
        std::scoped_lock guard{mutex_};
        lines_.push_back(std::move(what));
    }
    [[nodiscard]] lines seen() const
    {
        std::scoped_lock guard{mutex_};
        return lines_;
    }
    [[nodiscard]] bool becomes(lines const& expected) const
    {
        static_cast<void>(eventually([&] { return seen().size() >= expected.size(); }));
        return seen() == expected;
    }

private:
    mutable std::mutex mutex_;
    lines lines_;
};

/// Orders of one client, and another client that observes.
struct shop {
    holdfast::memory::store here;
    holdfast::memory::store there = here.another_client();
    mutex orders{here, "orders"};
};

[[nodiscard]] std::string token(mutex const& held) { return std::to_string(held.lease().fencing_token()); }

std::string const unavailable = make_error_code(errc::unavailable).message();

}  // namespace

TEST_CASE("each change of the leader is told once and in order, times without one included")
{
    shop s;
    log_book told;
    election_observer const seen{s.there, "orders", told.options()};
    lines expected{"nobody"};
    CHECK(told.becomes(expected));
    CHECK_FALSE(seen.leader());
    for (int i = 0; i < 3; ++i) {
        s.orders.lock();
        expected.push_back(token(s.orders));
        CHECK(told.becomes(expected));
        CHECK(seen.leader().value().fencing_token == s.orders.lease().fencing_token());
        s.orders.unlock();
        expected.emplace_back("nobody");
        CHECK(told.becomes(expected));
    }
}

TEST_CASE("a leader that follows another one without a gap, and has no number, is a change")
{
    shop s;
    mutex theirs{s.there, "orders", {.fencing = false}};
    mutex ours{s.here, "orders", {.fencing = false}};
    log_book told;
    theirs.lock();
    election_observer const seen{s.there, "orders", told.options()};
    CHECK(told.becomes({"0"}));
    std::jthread next{[&] { ours.lock(); }};
    CHECK(eventually([&] { return s.there.holder("orders")->waiting == 1U; }));
    theirs.unlock();
    next.join();
    CHECK(eventually([&] {
        auto const all = told.seen();
        return all == lines{"0", "0"} || all == lines{"0", "nobody", "0"};
    }));
    ours.unlock();
}

TEST_CASE("an observation begins with the leader of that moment")
{
    shop s;
    s.orders.lock();
    log_book told;
    election_observer const seen{s.orders, told.options()};
    CHECK(told.becomes({token(s.orders)}));
    s.here.erase("orders");
    CHECK(eventually([&] { return told.seen().back() == "nobody"; }));
}

TEST_CASE("that the store cannot be asked is told once and is no change; what is true after that is told")
{
    shop s;
    s.orders.lock();
    auto const leader = token(s.orders);
    log_book told;
    election_observer const seen{s.there, "orders", told.options()};
    CHECK(told.becomes({leader}));
    s.here.set_faults({.unavailable = true});
    CHECK(told.becomes({leader, "error " + unavailable}));
    std::error_code ec;
    CHECK_FALSE(seen.leader(ec));
    CHECK(ec == errc::unavailable);
    CHECK(code_of([&] { static_cast<void>(seen.leader()); }) == errc::unavailable);
    s.here.set_faults({});
    CHECK(told.becomes({leader, "error " + unavailable, "over " + unavailable}));
    CHECK(seen.leader(ec));
    CHECK_FALSE(ec);
    s.here.set_faults({.unavailable = true});
    CHECK(eventually([&] { return told.seen().size() == 4; }));
    s.here.erase("orders");
    s.here.set_faults({});
    CHECK(told.becomes({leader, "error " + unavailable, "over " + unavailable, "error " + unavailable,
                        "over " + unavailable, "nobody"}));
}

TEST_CASE("a candidate observes its own election; one that has resigned leads until it has given the lock back")
{
    shop s;
    std::atomic<bool> deposing{false};
    std::atomic<bool> go_on{false};
    election leader{s.orders,
                    {.on_deposed =
                         [&] {
                             deposing = true;
                             static_cast<void>(eventually([&] { return go_on.load(); }));
                         },
                     .pause = 1h}};
    REQUIRE(eventually([&] { return leader.still_leader(); }));
    auto const number = leader.term().fencing_token();
    log_book told;
    election_observer const seen = leader.observe(told.options());
    CHECK(told.becomes({std::to_string(number)}));
    CHECK(leader.resign());
    CHECK(eventually([&] { return deposing.load(); }));
    CHECK_FALSE(leader.still_leader());
    CHECK(leader.leader().value().fencing_token == number);
    CHECK(told.seen() == lines{std::to_string(number)});
    go_on = true;
    CHECK(told.becomes({std::to_string(number), "nobody"}));
    CHECK_FALSE(leader.leader());
}

TEST_CASE("a candidate that is asked who leads says why it does not know")
{
    shop s;
    election const leader{s.orders};
    REQUIRE(eventually([&] { return leader.still_leader(); }));
    auto ec = make_error_code(errc::contended);
    CHECK(leader.leader(ec));
    CHECK_FALSE(ec);
    s.here.set_faults({.unavailable = true});
    CHECK_FALSE(leader.leader(ec));
    CHECK(ec == errc::unavailable);
    s.here.set_faults({});
}

TEST_CASE("nothing is told after the end of an observation, which waits for the function that runs")
{
    shop s;
    std::atomic<bool> runs{false};
    std::atomic<bool> ended{false};
    std::atomic<int> calls{0};
    auto seen =
        std::make_unique<election_observer>(s.there, "orders",
                                            election_observer_options{.on_change =
                                                                          [&](std::optional<lock_holder> const&) {
                                                                              ++calls;
                                                                              runs = true;
                                                                              std::this_thread::sleep_for(20ms);
                                                                              ended = true;
                                                                          },
                                                                      .interval = 1ms});
    CHECK(eventually([&] { return runs.load(); }));
    seen.reset();
    CHECK(ended);
    CHECK(calls == 1);
    s.orders.lock();  // a change
    std::this_thread::sleep_for(20ms);
    CHECK(calls == 1);
}

TEST_CASE("an observation may be ended by each of its functions, which is then the last one that is called")
{
    bool const by_error = GENERATE(true, false);
    shop s;
    auto lock = std::make_unique<mutex>(s.there, "orders");
    if (by_error) s.here.set_faults({.unavailable = true});
    std::unique_ptr<election_observer> seen;
    std::atomic<bool> made{false};
    std::atomic<int> calls{0};
    std::atomic<bool> ended{false};
    auto const end = [&] {
        if (!eventually([&] { return made.load(); })) return;
        ++calls;
        seen.reset();
        lock.reset();
        ended = true;
    };
    seen = std::make_unique<election_observer>(
        *lock, election_observer_options{.on_change = [&](std::optional<lock_holder> const&) { end(); },
                                         .on_error = [&](holdfast::error const&) { end(); },
                                         .interval = 1ms});
    made = true;
    CHECK(eventually([&] { return ended.load(); }));
    s.here.set_faults({});
    s.orders.lock();
    std::this_thread::sleep_for(20ms);
    CHECK(calls == 1);
}

TEST_CASE("what on_error throws is dropped, and the observation goes on")
{
    shop s;
    s.here.set_faults({.unavailable = true});
    std::atomic<int> errors{0};
    std::atomic<int> changes{0};
    election_observer const seen{s.there,
                                 "orders",
                                 {.on_change = [&](std::optional<lock_holder> const&) { ++changes; },
                                  .on_error =
                                      [&](holdfast::error const&) {
                                          ++errors;
                                          throw std::runtime_error{"dropped"};
                                      },
                                  .interval = 1ms}};
    CHECK(eventually([&] { return errors == 1; }));
    s.here.set_faults({});
    CHECK(eventually([&] { return changes == 1; }));
    CHECK(errors == 2);
}

TEST_CASE("an observer without functions answers questions")
{
    shop s;
    election_observer const seen{s.there, "orders", {.interval = 1ms}};
    s.orders.lock();
    CHECK(seen.leader());
    s.orders.unlock();
    CHECK_FALSE(seen.leader());
}

TEST_CASE("an observer that cannot be used is refused")
{
    shop s;
    for (auto const wrong : {0ms, -1ms, holdfast::longest_ttl + 1ms})
        CHECK(code_of([&] {
                  election_observer const seen{s.there, "orders", {.interval = wrong}};
              }) == errc::misconfigured);
    CHECK(code_of([&] { election_observer const seen{s.there, ""}; }) == errc::misconfigured);
}
