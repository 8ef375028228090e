// SPDX-License-Identifier: MIT
//
// A world of its own: what is asked for happens in its time, and the same seed gives the same history.
#include <holdfast/sim/world.hpp>

#include <chrono>
#include <cstdint>

int main()
{
    using namespace std::chrono_literals;
    auto const history = [](std::uint64_t seed) {
        holdfast::sim::world world{seed};
        auto const begin = world.now();
        holdfast::boot_clock::duration passed{};
        world.at(begin + 24h, [&] { passed = world.now() - begin; });
        while (world.step(begin + 48h)) {
        }
        return passed == 24h ? world.hash() : 0;
    };
    return history(1) == history(1) ? 0 : 1;
}
