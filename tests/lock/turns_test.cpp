// SPDX-License-Identifier: MIT
//
// Whose turn it is, without a store.
#include "support/catch.hpp"

#include <holdfast/core/options.hpp>
#include <holdfast/lock/mutex_state.hpp>
#include <holdfast/lock/turns.hpp>
#include <holdfast/lock/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace {

struct call final : holdfast::detail::waiter {
    explicit call(holdfast::detail::mutex_state& of) : waiter{of, {}} {}
    void signal(std::uint32_t) noexcept override {}
};

std::size_t count(holdfast::detail::turns const& line, holdfast::detail::mutex_state const& of)
{
    std::size_t n = 0;
    line.for_each_of(of, [&](auto&) { ++n; });
    return n;
}

}  // namespace

TEST_CASE("the waiters of an object are found, in line or not, and the line is not looked at for one that has none")
{
    auto const options = std::make_shared<holdfast::lock_options const>();
    holdfast::detail::mutex_state one;
    holdfast::detail::mutex_state other;
    holdfast::detail::mutex_state none;
    for (auto* const state : {&one, &other, &none}) state->options = options;
    holdfast::detail::turns line;
    std::vector<std::unique_ptr<call>> calls;
    for (auto* const owner : {&one, &one, &other, &one}) {
        calls.push_back(std::make_unique<call>(*owner));
        line.enter(*calls.back());
    }
    CHECK(one.in_line == 2);  // the first asks
    CHECK(other.in_line == 1);
    CHECK(none.in_line == 0);
    CHECK(count(line, one) == 3);
    CHECK(count(line, other) == 1);
    CHECK(count(line, none) == 0);

    line.give_up(*calls[1]);
    CHECK(one.in_line == 1);
    CHECK(count(line, one) == 2);
    auto* const next = line.pass_on();  // the first has ended without the lock
    CHECK(next == calls[2].get());
    CHECK(other.in_line == 0);
    CHECK(count(line, other) == 1);
    CHECK(count(line, one) == 1);
    line.hand_on(*calls[3]);
    CHECK(one.in_line == 0);
    CHECK(count(line, one) == 0);
}
