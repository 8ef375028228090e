// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/adapters/campaign_pause.hpp>

#include <chrono>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::make_error_code;
using holdfast::detail::campaign_pause;

TEST_CASE("the pause after a failed campaign doubles up to a bound, less up to half; after a term it begins anew")
{
    campaign_pause pause{3s, {.first = 100ms, .most = 450ms}, 7};
    auto const unavailable = make_error_code(errc::unavailable);
    auto const within = [](auto d, auto most) { return d > most / 2 - 1ns && d <= most; };
    for (int round = 0; round < 2; ++round) {
        CHECK(within(pause.after_failure(unavailable, 0s), 100ms));
        CHECK(within(pause.after_failure(unavailable, 0s), 200ms));
        CHECK(within(pause.after_failure(unavailable, 0s), 400ms));
        CHECK(within(pause.after_failure(unavailable, 0s), 450ms));
        CHECK(within(pause.after_failure(unavailable, 0s), 450ms));
        CHECK(pause.after_term() == 3s);
    }
}

TEST_CASE("after a campaign that is misconfigured the pause is long at once")
{
    campaign_pause pause{0s, {.first = 1us, .most = 10s}, 7};
    CHECK(pause.after_failure(make_error_code(errc::misconfigured), 0s) >= 5s);
    CHECK(pause.after_term() == 0s);
    CHECK(pause.after_failure(make_error_code(errc::unavailable), 0s) <= 1us);
}

TEST_CASE("candidates that failed at one time do not pause for the same time")
{
    campaign_pause one{0s, {.first = 10s, .most = 10s}, 1};
    campaign_pause other{0s, {.first = 10s, .most = 10s}, 2};
    auto const why = make_error_code(errc::unavailable);
    CHECK(one.after_failure(why, 0s) != other.after_failure(why, 0s));
}

TEST_CASE("the pause after a campaign that lasted long is short again: it is none of several that fail in a row")
{
    campaign_pause pause{0s, {.first = 100ms, .most = 10s}, 7};
    auto const why = make_error_code(errc::unavailable);
    for (int i = 0; i < 10; ++i) CHECK(pause.after_failure(why, 10s) <= 10s);
    CHECK(pause.after_failure(why, 10s) >= 5s - 1ns);
    CHECK(pause.after_failure(why, 1h) <= 100ms);
    CHECK(pause.after_failure(why, 10s) <= 200ms);
}
