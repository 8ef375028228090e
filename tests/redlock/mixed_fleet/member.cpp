// SPDX-License-Identifier: MIT
//
// A member of a mixed fleet: member BOARD SEAT URL...: takes the lock again and again, until it is to stop. It is
// compiled with two versions of the library.
#include "board.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

template <class Mutex>
void go_on(Mutex& orders, board& all, std::size_t seat)
{
    while (!all.stop) {
        holdfast::leased_lock hold{orders};
        auto const before = all.inside.exchange(seat + 1);
        if (before != 0 && !all.seats[before - 1].killed) ++all.overlaps;
        bool const after_later_one = all.fence.exchange(hold.fencing_token()) >= hold.fencing_token();
        if (after_later_one && hold.still_held()) ++all.fences_in_disorder;
        ++all.seats[seat].sections;
        all.inside = 0;
        if (!hold.still_held()) ++all.lost;
    }
}

}  // namespace

int main(int argc, char* argv[])
try {
    if (argc < 4) return 2;
    auto& all = map_board(argv[1], false);
    auto const seat = static_cast<std::size_t>(std::atoi(argv[2]));
    std::vector<std::string> const urls{argv + 3, argv + argc};
    holdfast::lock_options const options{.ttl = 10s, .unavailable_after = 1min};
    if (urls.size() == 1) {
        holdfast::redis::client client{urls[0]};
        holdfast::redis::mutex orders{client, "orders", options};
        go_on(orders, all, seat);
    } else {
        holdfast::redlock::masters masters{urls, {.restart_guard = 0ms}};
        holdfast::redlock::mutex orders{masters, "orders", options};
        go_on(orders, all, seat);
    }
    return 0;
} catch (std::exception const& e) {
    std::fprintf(stderr, "member: %s\n", e.what());
    return 1;
}
