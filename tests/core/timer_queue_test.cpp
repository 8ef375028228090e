// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/timer_queue.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <random>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::detail::timed;
using holdfast::detail::timer_queue;

namespace {

struct entry : timed {
    int number = 0;
};

constexpr boot_clock::time_point t0{1000s};

}  // namespace

TEST_CASE("a timer queue without entries has no next time")
{
    timer_queue const queue;
    CHECK_FALSE(queue.first());
    CHECK(queue.next() == boot_clock::time_point::max());
}

TEST_CASE("entries of one time leave a timer queue in the order in which they came")
{
    std::vector<entry> all(50);
    timer_queue queue;
    for (auto& one : all) queue.add(one, t0);
    queue.remove(all[7]);
    queue.add(all[7], t0);
    std::vector<entry const*> left;
    while (auto* const one = queue.first()) {
        left.push_back(static_cast<entry*>(one));
        queue.remove(*one);
    }
    REQUIRE(left.size() == all.size());
    CHECK(left.back() == &all[7]);
    left.pop_back();
    CHECK(std::is_sorted(left.begin(), left.end()));
}

TEST_CASE("a timer queue gives the earliest entry first, whatever was added and removed")
{
    std::mt19937 random{1};
    std::vector<entry> all(200);
    std::vector<entry*> in;
    timer_queue queue;
    for (int i = 0; i < 20000; ++i) {
        auto& one = all[random() % all.size()];
        auto const found = std::find(in.begin(), in.end(), &one);
        if (found == in.end()) {
            one.number = i;
            queue.add(one, t0 + std::chrono::seconds{random() % 100});
            in.push_back(&one);
        } else {
            queue.remove(one);
            in.erase(found);
        }
        auto const earliest = std::min_element(in.begin(), in.end(), [](entry const* a, entry const* b) {
            return a->at() != b->at() ? a->at() < b->at() : a->number < b->number;
        });
        REQUIRE(queue.first() == (in.empty() ? nullptr : *earliest));
        REQUIRE(queue.next() == (in.empty() ? boot_clock::time_point::max() : (*earliest)->at()));
    }
}
