// SPDX-License-Identifier: MIT
#include <holdfast/core/error.hpp>
#include <holdfast/core/report_once.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

using holdfast::errc;
using holdfast::detail::report_once;

TEST_CASE("a cause is reported once for each place, and again only when it was over", "[core][report_once]")
{
    report_once reports;
    auto const down = make_error_code(errc::unavailable);
    auto const wrong = make_error_code(errc::misconfigured);

    CHECK(reports.begins("a", down));
    CHECK_FALSE(reports.begins("a", down));
    CHECK(reports.begins("a", wrong));
    CHECK(reports.begins("b", down));

    CHECK(reports.ends("a", down));
    CHECK_FALSE(reports.ends("a", down));
    CHECK_FALSE(reports.begins("a", wrong));
    CHECK(reports.begins("a", down));
    CHECK_FALSE(reports.begins("b", down));
}

TEST_CASE("a place that is well again ends all its causes, and says which", "[core][report_once]")
{
    report_once reports;
    auto const down = make_error_code(errc::unavailable);
    auto const wrong = make_error_code(errc::misconfigured);

    CHECK(reports.ends("a").empty());
    CHECK(reports.begins("a", down));
    CHECK(reports.begins("a", wrong));
    CHECK(reports.begins("b", wrong));
    CHECK(reports.ends("a") == report_once::causes{{"a", down}, {"a", wrong}});
    CHECK(reports.ends("a").empty());
    CHECK(reports.ends("b", wrong));
}

TEST_CASE("of many threads that meet a cause at once, one is to report it", "[core][report_once]")
{
    report_once reports;
    std::atomic<int> told{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            if (reports.begins("a", make_error_code(errc::unavailable))) ++told;
        });
    for (auto& one : threads) one.join();
    CHECK(told == 1);
}
