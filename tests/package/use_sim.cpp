// SPDX-License-Identifier: MIT
//
// A world of its own: what is asked for happens in its time, and the same seed gives the same history.
#include <holdfast/sim.hpp>
#include <holdfast/sim/program_clock.hpp>

#include <chrono>
#include <cstdint>

int main()
{
    using namespace std::chrono_literals;
    auto const history = [](std::uint64_t seed) {
        holdfast::sim::world world{seed};
        holdfast::sim::store redis{world};
        holdfast::sim::client client{redis};
        auto const begin = world.now();
        bool held = false;
        client.run([&](holdfast::sim::client& me) -> holdfast::sim::process {
            holdfast::sim::mutex orders{me, "orders"};
            held = co_await orders.async_lock();
            co_await me.sleep_for(24h);
            held = held && orders.lease().still_held();
            co_await orders.async_unlock();
        });
        world.run_until(begin + 48h);
        return held && client.done() ? world.hash() : 0;
    };
    return history(1) != 0 && history(1) == history(1) ? 0 : 1;
}
