// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/refusal.hpp"

#include <holdfast/core/options.hpp>

#include <string>

using namespace std::chrono_literals;
using holdfast::check_options;
using holdfast::lock_options;
using holdfast::refused_ttl;
using holdfast::test::contains;
using holdfast::test::refusal;

namespace {

constexpr auto accepted = "(not refused)";

std::string refused(lock_options const& options, std::chrono::milliseconds node_timeout = 500ms)
{
    return refusal(
        [&] { check_options("orders/42", options, refused_ttl(options.ttl, node_timeout, "operation_timeout")); });
}

}  // namespace

TEST_CASE("the default options are good, and say what they are documented to")
{
    lock_options const o;
    CHECK(refused(o) == accepted);
    CHECK(o.ttl == 30s);
    CHECK(o.renew);
    CHECK_FALSE(o.max_hold);
    CHECK(o.fencing);
    CHECK(o.max_local_handoffs == 63);
    CHECK_FALSE(o.on_error);
}

TEST_CASE("options at the ends of their ranges are good")
{
    CHECK(refused({.ttl = 5ms}, 0ms) == accepted);
    CHECK(refused({.ttl = 1000ms}) == accepted);
    CHECK(refused({.ttl = 24h}) == accepted);
    CHECK(refused({.max_hold = 1ms}) == accepted);
    CHECK(refused({.max_hold = std::chrono::milliseconds::max()}) == accepted);
    CHECK(refused({.max_local_handoffs = 0}) == accepted);
    CHECK(refused({.max_local_handoffs = 63}) == accepted);
    CHECK(refused({.retry = {.first = 1us, .most = 24h}}) == accepted);
    CHECK(refused({.retry = {.first = 1ms, .most = 1ms}}) == accepted);
    CHECK(refused({.unavailable_after = 0ms}) == accepted);
    CHECK(refused({.unavailable_after = std::chrono::milliseconds::max()}) == accepted);
}

TEST_CASE("a ttl that cannot be is refused with its value")
{
    CHECK_THAT(refused({.ttl = 0ms}), contains("ttl is 0 ms") && contains("positive"));
    CHECK_THAT(refused({.ttl = -1ms}), contains("ttl is -1 ms") && contains("positive"));
    CHECK_THAT(refused({.ttl = 4ms}, 0ms), contains("ttl is 4 ms") && contains("at least 5 ms") && contains("clocks"));
    CHECK_THAT(refused({.ttl = 24h + 1ms}), contains("ttl is 86400001 ms") && contains("a day"));
    CHECK_THAT(refused({.ttl = std::chrono::milliseconds::max()}), contains("ttl") && contains("a day"));
}

TEST_CASE("a ttl below twice the time that a node is given to answer is refused with both, and the name of the option")
{
    CHECK(
        refused({.ttl = 999ms}) ==
        "lock \"orders/42\": ttl is 999 ms, less than twice the client's operation_timeout, 500 ms; make ttl longer or "
        "that time shorter: the lock or its client is misconfigured");
    CHECK(refused_ttl(99ms, 50ms, "node_timeout") ==
          "less than twice the client's node_timeout, 50 ms; make ttl longer or that time shorter");
}

TEST_CASE("each field that is wrong is named")
{
    CHECK_THAT(refused({.max_hold = 0ms}), contains("max_hold"));
    CHECK_THAT(refused({.max_hold = -1ms}), contains("max_hold"));
    CHECK_THAT(refused({.max_local_handoffs = 64}), contains("max_local_handoffs is 64") && contains("63"));
    CHECK_THAT(refused({.retry = {.first = 0us}}), contains("retry.first"));
    CHECK_THAT(refused({.retry = {.first = -1us}}), contains("retry.first"));
    CHECK_THAT(refused({.retry = {.first = 2ms, .most = 1ms}}), contains("retry.most") && contains("retry.first"));
    for (auto const most : {0ms, std::chrono::milliseconds::min(), std::chrono::milliseconds::min() + 1ms})
        CHECK_THAT(refused({.retry = {.most = most}}), contains("retry.most must be positive"));
    CHECK_THAT(refused({.retry = {.most = 24h + 1ms}}), contains("retry.most is 86400001 ms"));
    CHECK_THAT(refused({.retry = {.most = std::chrono::milliseconds::max()}}),
               contains("retry.most is 9223372036854775807 ms"));
    CHECK_THAT(refused({.unavailable_after = -1ms}), contains("unavailable_after"));
}

TEST_CASE("a refusal names the lock")
{
    CHECK_THAT(refused({.ttl = 0ms}), contains("lock \"orders/42\""));
    CHECK_THAT(refused({.max_local_handoffs = 64}), contains("lock \"orders/42\""));
}

namespace {

std::string refused_margin(std::chrono::milliseconds ttl, std::chrono::milliseconds margin)
{
    lock_options const options{.ttl = ttl, .stop_margin = margin};
    return refusal([&] {
        check_options("orders/42", options, refused_ttl(ttl, 500ms, "operation_timeout"));
        holdfast::check_time(
            "orders/42", "stop_margin", options.stop_margin,
            holdfast::refused_margin(ttl, margin, refused_ttl(ttl - margin, 500ms, "operation_timeout")));
    });
}

}  // namespace

TEST_CASE("a stop_margin is half of the ttl at most, and leaves it twice the time that a node is given to answer")
{
    CHECK(lock_options{}.stop_margin == 0ms);
    CHECK(refused_margin(1000ms, 0ms) == accepted);
    CHECK(refused_margin(30s, 15s) == accepted);
    CHECK(refused_margin(2000ms, 1000ms) == accepted);
    CHECK_THAT(refused_margin(30s, -1ms), contains("stop_margin is -1 ms") && contains("negative"));
    CHECK(refused_margin(30s, 15001ms) ==
          "lock \"orders/42\": stop_margin is 15001 ms, but at most half of the ttl is allowed, 15000 ms: the lock or "
          "its client is misconfigured");
    CHECK_THAT(refused_margin(1500ms, 501ms),
               contains("stop_margin is 501 ms, which leaves 999 ms of the ttl, less than twice") &&
                   contains("operation_timeout, 500 ms"));
    CHECK_THAT(refused_margin(30s, std::chrono::milliseconds::max()), contains("stop_margin") && contains("half"));
    CHECK_THAT(refused_margin(30s, std::chrono::milliseconds::min()), contains("stop_margin") && contains("negative"));
}
