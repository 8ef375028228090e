// SPDX-License-Identifier: MIT
//
// Your own code in virtual time: four services on five Redis masters, for an hour in which messages are late and lost,
// services stand still, and masters crash and hang. The same seed gives the same hour.
//
//   simulated [SEED]      1
#include <holdfast/sim.hpp>
#include <holdfast/sim/program_clock.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>

using namespace std::chrono_literals;
namespace sim = holdfast::sim;

namespace {

/// Stands for a database that keeps the greatest token it has seen beside the row.
struct fenced_row {
    std::uint64_t newest = 0;
    unsigned written = 0;
    unsigned refused = 0;

    void write(std::uint64_t fencing_token)
    {
        if (fencing_token < newest) return static_cast<void>(++refused);
        newest = fencing_token;
        ++written;
    }
};

/// The code under test. With `co_await` before what waits it is what it would be over real masters.
sim::process ship_orders(sim::client& me, fenced_row& row)
{
    sim::mutex orders{me, "orders/42", {.ttl = 10s}};
    for (int i = 0; i < 100; ++i) {
        try {
            if (!co_await orders.async_try_lock_for(1min)) continue;
        } catch (holdfast::error const&) {
            continue;  // no quorum for a minute
        }
        auto const hold = orders.lease();
        co_await me.sleep_for(2s);
        if (hold.still_held()) {
            co_await me.sleep_for(5ms);  // on its way to the database, which may take longer than the lease lives
            row.write(hold.fencing_token());
        }
        co_await orders.async_unlock();
        co_await me.sleep_for(1s);
    }
}

struct history {
    fenced_row row;
    std::uint64_t hash = 0;
};

history run(std::uint64_t seed)
{
    sim::world world{seed, {.late = 20, .lost_request = 5, .lost_reply = 5, .pause = 5, .longest_pause = 30s}};
    sim::store masters{world, 5};
    std::array<sim::client, 4> services{sim::client{masters}, sim::client{masters}, sim::client{masters},
                                        sim::client{masters, {.ahead = 3h, .drift_ppm = 200}}};
    history h;
    for (auto& one : services) one.run([&](sim::client& me) { return ship_orders(me, h.row); });
    masters.disturb(world.now() + 1h, 5min, 1min);
    world.run_until(world.now() + 1h);
    h.hash = world.hash();
    return h;
}

}  // namespace

int main(int argc, char** argv)
{
    auto const seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
    auto const first = run(seed);
    std::cout << first.row.written << " orders shipped, " << first.row.refused << " late writes refused" << std::endl;
    bool const again = run(seed).hash == first.hash;
    std::cout << (again ? "a second run was the same" : "a second run was another") << std::endl;
    return again && first.row.written > 0 ? 0 : 1;
}
