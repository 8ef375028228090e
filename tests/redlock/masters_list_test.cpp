// SPDX-License-Identifier: MIT
//
// However the list of masters is written, it is that list.
#include "masters.hpp"
#include "support/catch.hpp"

#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redlock::masters;
using holdfast::test::code_of;
using holdfast::test::contains;

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
