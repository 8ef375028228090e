// SPDX-License-Identifier: MIT
//
// What outlasts a store.
#include "support/catch.hpp"

#include <holdfast/memory.hpp>

#include <chrono>
#include <cstdint>

TEST_CASE("the tokens of a store begin at the system's clock, so that those after a restart are greater")
{
    auto const clock = [] {
        auto const now = std::chrono::system_clock::now().time_since_epoch();
        return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
    };
    auto const begun = clock();
    holdfast::memory::store here;
    holdfast::memory::mutex m{here, "orders", {.max_local_handoffs = 0}};
    m.lock();
    auto const token = m.lease().fencing_token();
    CHECK(token > begun);
    CHECK(token <= clock() + 1);
}
