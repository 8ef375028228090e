// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/redis/error.hpp>
#include <holdfast/redis/server_news.hpp>

#include <string>

using holdfast::redis::errc;
using holdfast::redis::server_news;

TEST_CASE("of the reports of servers that nobody takes the newest are kept, and not without end")
{
    server_news news;
    auto const detail = [](int i) { return "the detail " + std::to_string(i); };
    for (int i = 0; i < 10'000; ++i)
        news.begins("server " + std::to_string(i), make_error_code(errc::cannot_connect), [&] { return detail(i); });
    auto const all = news.take();
    REQUIRE(all.size() == 128);
    CHECK(std::string{all.front().what()}.find(detail(9'872)) != std::string::npos);
    CHECK(std::string{all.back().what()}.find(detail(9'999)) != std::string::npos);
    CHECK(news.take().empty());
}
