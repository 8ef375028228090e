// SPDX-License-Identifier: MIT
//
// However the list of masters is written, it is that list.
#include "masters.hpp"
#include "support/catch.hpp"

#include <holdfast/make_store.hpp>
#include <holdfast/redis/endpoint.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::five_masters;

namespace {

template <class F>
void check_duplicate(F&& make)
{
    std::string what;
    CHECK(code_of(make, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("is there twice"));
}

}  // namespace

TEST_CASE("two masters in braces are two, not the two ends of one URL")
{
    CHECK_FALSE(code_of([] { masters const m{{"redis://a", "redis://b"}}; }));
    CHECK_FALSE(code_of([] { masters const m{"redis://a", "redis://b"}; }));
    CHECK_FALSE(code_of([] { masters const m{{"redis://a", "redis://b"}, {.node_timeout = 20ms}}; }));
    check_duplicate([] { masters const m{{"redis://a", "redis://a"}}; });
    check_duplicate([] { masters const m{"redis://a", "redis://a"}; });
    check_duplicate([] { masters const m{{"redis://a", "redis://a"}, {.node_timeout = 20ms}}; });
}

TEST_CASE("one, three and five masters, as texts of any kind, are that many")
{
    std::string const text = "redis://a";
    std::string_view const view = "redis://b";
    CHECK_FALSE(code_of([&] { masters const m{{text}}; }));
    CHECK_FALSE(code_of([&] { masters const m{text}; }));
    CHECK_FALSE(code_of([&] { masters const m{{text, view, "redis://c"}}; }));
    CHECK_FALSE(code_of([&] { masters const m{{"redis://a", "redis://b", "redis://c", "redis://d", "redis://e"}}; }));
    check_duplicate([&] { masters const m{{text, view, "redis://b"}}; });
    check_duplicate([&] { masters const m{std::vector<std::string>{"redis://a", "redis://a"}}; });
    check_duplicate([&] { masters const m{{"redis://a", "redis://b", "redis://c", "redis://d", "redis://a"}}; });
}

TEST_CASE("of several URLs that one is named which is wrong")
{
    std::string what;
    CHECK(code_of([] { masters const m{{"redis://a", "redis://:secret@b:x", "redis://c"}}; }, &what) ==
          errc::misconfigured);
    CHECK_THAT(what, contains("Redis URL 2 of 3, port"));
    CHECK(what.find("secret") == std::string::npos);
}

TEST_CASE("a list in one URL is cut at the commas, and no part of a password with a comma in it is repeated")
{
    using holdfast::make_store;
    CHECK_FALSE(code_of([] { static_cast<void>(make_store("redlock+redis://:a%2cb@a,b,redis://c")); }));
    for (auto const* const url :
         {"redlock+redis://:p?secret,x@a,b", "redlock+redis://:p?secret=x,x@a", "redlock+redis://u:1,q?secret,x@a",
          "redlock+rediss://u:p?secret,x@a", "redlock+unix://u:p?secret,x@/a", "redlock+unix:///a?db=1&secret,x@/b"}) {
        CAPTURE(url);
        std::string what;
        CHECK(code_of([&] { static_cast<void>(make_store(url)); }, &what) == errc::misconfigured);
        CHECK_THAT(what, contains("Redis URL ") && contains("%2c") && !contains("secret"));
    }
}

TEST_CASE("masters given as endpoints, by a Unix socket or a port, are the same masters")
{
    five_masters five;
    std::vector<holdfast::redis::endpoint> ways;
    for (auto const& one : five.servers) {
        if (ways.size() < 3)
            ways.push_back({.unix_path = one.socket().string()});
        else
            ways.push_back({.port = one.port()});
    }
    masters by_endpoints{ways, five_masters::options()};
    std::vector<std::string> urls;
    for (auto const& one : five.servers) urls.push_back(one.unix_url());
    masters by_sockets{urls, five_masters::options()};
    mutex a{five.client, "orders"};
    mutex b{by_endpoints, "orders"};
    mutex c{by_sockets, "orders"};
    std::uint64_t last = 0;
    for (auto* const one : {&a, &b, &c}) {
        REQUIRE(one->try_lock_for(1min));
        CHECK(one->lease().fencing_token() > last);
        last = one->lease().fencing_token();
        for (auto* const other : {&a, &b, &c}) CHECK((other == one || !other->try_lock()));
        one->unlock();
    }
}
