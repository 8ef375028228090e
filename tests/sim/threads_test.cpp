// SPDX-License-Identifier: MIT
#include "sweep/process_lock.hpp"
#include "sweep/threads.hpp"

#include <holdfast/core/parker.hpp>
#include <holdfast/sim.hpp>

#include "support/catch.hpp"

#include <chrono>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

using namespace holdfast;
using namespace std::chrono_literals;
using test::threads;

namespace {

/// One server, two clients, and the threads of these.
struct fixture {
    sim::world world{1};
    sim::store servers{world};
    sim::client one{servers, {.ahead = 3h}};
    sim::client other{servers, {.ahead = 70h}};
    threads all;

    void run(boot_clock::duration d) { world.run_until(world.now() + d); }
};

}  // namespace

TEST_CASE("a simulated thread sleeps in virtual time, by the clock of its process")
{
    fixture f;
    std::vector<int> order;
    boot_clock::time_point woke{};
    auto const begun = f.other.host().now();
    f.all.begin(f.one.host(), [&] {
        threads::sleep_until(f.one.host().present() + 2h);
        order.push_back(2);
    });
    f.all.begin(f.other.host(), [&] {
        threads::sleep_until(f.other.host().present() + 1h);
        woke = boot_clock::now();
        order.push_back(1);
    });
    f.run(3h);
    CHECK(order == std::vector<int>{1, 2});
    CHECK(woke - begun == 1h);
}

TEST_CASE("the shipped parker of a simulated thread sleeps until a signal or its deadline")
{
    fixture f;
    detail::parker place;
    std::uint32_t signals = 0;
    boot_clock::duration slept{};
    auto& host = f.one.host();
    f.all.begin(host, [&] {
        auto const begun = boot_clock::now();
        while ((signals = place.park_until(boot_clock::time_point::max())) == 0) {
        }
        slept = boot_clock::now() - begun;
    });
    f.all.begin(f.other.host(), [&] {
        threads::sleep_until(host.present() + 1h);
        place.unpark(4);
    });
    f.run(1h + 1s);
    CHECK(signals == 4);
    CHECK(slept == 1h);
    bool late = false;
    f.all.begin(host, [&] {
        auto const until = boot_clock::now() + 3s;
        while (boot_clock::now() < until) CHECK(place.park_until(until) == 0);
        late = true;
    });
    f.run(2s);
    CHECK_FALSE(late);
    f.run(2s);
    CHECK(late);
}

TEST_CASE("each simulated thread handles exceptions of its own")
{
    fixture f;
    std::vector<std::string> caught;
    auto const work = [&](sim::client& in, std::string const& what, boot_clock::duration pause) {
        f.all.begin(in.host(), [&, what, pause] {
            try {
                throw std::runtime_error{what};
            } catch (std::runtime_error const& e) {
                threads::sleep_until(in.host().present() + pause);
                try {
                    std::rethrow_exception(std::current_exception());
                } catch (std::runtime_error const& again) {
                    caught.emplace_back(again.what());
                }
                caught.emplace_back(e.what());
            }
        });
    };
    work(f.one, "first", 2s);
    work(f.other, "second", 3s);
    work(f.one, "third", 1s);
    f.run(5s);
    CHECK(caught == std::vector<std::string>{"third", "third", "first", "first", "second", "second"});
    CHECK(std::current_exception() == nullptr);
}

TEST_CASE("a thread waits for the end of another")
{
    fixture f;
    std::vector<int> order;
    f.all.begin(f.one.host(), [&] {
        test::process_thread other{[&] {
            threads::sleep_until(f.one.host().present() + 1s);
            order.push_back(1);
        }};
        CHECK(other.joinable());
        CHECK(other.get_id() != test::process_threads::here());
        other.join();
        CHECK_FALSE(other.joinable());
        order.push_back(2);
    });
    f.run(2s);
    CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("the shipped mutex excludes simulated threads, and says how a wait has ended")
{
    fixture f;
    std::vector<int> order;
    f.all.begin(f.one.host(), [&] {
        test::process_mutex orders{f.one, "orders", {.ttl = 10s}};
        orders.lock();
        threads::sleep_until(f.one.host().present() + 1min);
        CHECK(orders.lease().still_held());
        order.push_back(1);
        std::error_code ec;
        orders.unlock(ec);
        CHECK_FALSE(ec);
        orders.unlock(ec);
        CHECK(ec == errc::not_owner);
    });
    f.all.begin(f.other.host(), [&] {
        test::process_mutex orders{f.other, "orders", {.ttl = 10s}};
        threads::sleep_until(f.other.host().present() + 1s);
        CHECK_FALSE(orders.try_lock());
        CHECK_FALSE(orders.try_lock_for(1s));
        std::scoped_lock const hold{orders};
        order.push_back(2);
    });
    f.run(2min);
    CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("the threads of a process that was killed do nothing, and end with the schedule")
{
    bool went_on = false;
    bool returned = false;
    {
        fixture f;
        f.all.begin(f.one.host(), [&] {
            test::process_mutex orders{f.one, "orders", {.ttl = 10s}};
            orders.lock();
            threads::sleep_until(f.one.host().present() + 1s);
            went_on = !threads::ending();
            CHECK_THROWS_AS(orders.lock(), error);
            returned = true;
        });
        f.run(500ms);
        f.one.kill();
        f.run(1min);
        CHECK_FALSE(returned);
    }
    CHECK_FALSE(went_on);
    CHECK(returned);
}
