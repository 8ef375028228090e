// SPDX-License-Identifier: MIT
#include "machines.hpp"
#include "support/catch.hpp"

#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/convert_recipe.hpp>
#include <holdfast/zookeeper/error.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using holdfast::access;
using holdfast::errc;
using holdfast::test::answer;
using holdfast::test::counted_tokens;
using holdfast::test::created;
using holdfast::test::driven;
using holdfast::test::names;
using holdfast::test::only;
using holdfast::test::stat;
using holdfast::zookeeper::convert_recipe;
using holdfast::zookeeper::leftover;
using holdfast::zookeeper::naming;
using phase = convert_recipe::phase;
using words = std::vector<std::string>;

namespace {

constexpr auto guid = "_c_00000000-0000-0000-0000-000000000001-";

/// What a hold would leave whose node has the number `digits`.
leftover held(access mode, std::string const& digits)
{
    return {"/a/b", {}, std::string{"/a/b/_c_held-"} + (mode == access::shared ? "__READ__" : "__WRIT__") + digits,
            100,    {}, 1,
            {}};
}

struct conversion : driven<convert_recipe> {
    explicit conversion(access to, std::string const& digits = "0000000007")
        : driven{holdfast::zookeeper::acquire_plan{.lock = "/a/b", .once = true, .tokens = counted_tokens()},
                 naming::curator, to, held(to == access::shared ? access::exclusive : access::shared, digits)}
    {
        machine.connected(1);
    }
};

std::string const writer = "_c_held-__WRIT__0000000007";
std::string const reader = "_c_held-__READ__0000000007";
std::string const new_reader = std::string{guid} + "__READ__0000000007";
std::string const new_writer = std::string{guid} + "__WRIT__0000000007";
std::string const waiter = "_c_other-__WRIT__0000000009";

}  // namespace

TEST_CASE("a writer becomes a reader in its own place, whoever waits")
{
    conversion c{access::shared};
    CHECK(c.sent() == words{"plain /a/b/" + new_reader, "children /a/b"});
    c.answer_to(0, created("/a/b/" + new_reader, 200));
    CHECK(c.machine.now() == phase::working);
    c.answer_to(1, names({writer, waiter, new_reader}));
    CHECK(c.machine.now() == phase::granted);
    CHECK(c.machine.what_is_left().node == "/a/b/" + new_reader);
    CHECK(c.machine.what_is_left().czxid == 200);
    // Those that wait have tokens from 101 * 64 on.
    CHECK(c.machine.first_token() == 100 * 64 + 63);
}

TEST_CASE("a reader becomes a writer in its own place, if no other client holds or waits")
{
    conversion c{access::exclusive};
    CHECK(c.sent() == words{"children /a/b"});
    c.answer_to(0, names({reader, "a note"}));
    CHECK(c.sent() == words{"plain /a/b/" + new_writer, "children /a/b"});
    c.answer_to(0, created("/a/b/" + new_writer, 200));
    SECTION("still none")
    {
        c.answer_to(1, names({reader, new_writer, "a note"}));
        CHECK(c.machine.now() == phase::granted);
        CHECK(c.machine.first_token() == 200 * 64);
    }
    SECTION("a reader came meanwhile, and may hold")
    {
        c.answer_to(1, names({reader, new_writer, "_c_other-__READ__0000000008"}));
        CHECK(c.machine.now() == phase::failed);
        CHECK(c.machine.why() == errc::timed_out);
        CHECK(c.machine.left_something());
        CHECK(c.machine.what_is_left().node == "/a/b/" + new_writer);
    }
    SECTION("another one tries the same")
    {
        c.answer_to(1, names({reader, new_writer, "_c_other-__WRIT__0000000008"}));
        CHECK(c.machine.why() == errc::timed_out);
    }
    SECTION("the list is lost")
    {
        c.answer_to(1, only(answer::lost));
        c.machine.connected(1);
        CHECK(c.sent() == words{"children /a/b"});
        c.answer_to(0, names({reader, new_writer}));
        CHECK(c.machine.now() == phase::granted);
    }
}

TEST_CASE("a reader beside others is refused before anything is made")
{
    auto const other = GENERATE(std::string{"_c_other-__READ__0000000003"}, waiter, std::string{"x__lock__0000000009"});
    conversion c{access::exclusive};
    static_cast<void>(c.sent());
    c.answer_to(0, names({reader, other}));
    CHECK(c.machine.now() == phase::failed);
    CHECK(c.machine.why() == errc::timed_out);
    CHECK_FALSE(c.machine.left_something());
    CHECK(c.sent().empty());
}

TEST_CASE("a hold that is lost is not converted")
{
    SECTION("a writer whose node is gone")
    {
        conversion c{access::shared};
        static_cast<void>(c.sent());
        c.answer_to(0, created("/a/b/" + new_reader, 200));
        c.answer_to(1, names({new_reader, waiter}));
        CHECK(c.machine.why() == errc::timed_out);
        CHECK(c.machine.left_something());
    }
    SECTION("a reader whose node is gone")
    {
        conversion c{access::exclusive};
        static_cast<void>(c.sent());
        c.answer_to(0, names({}));
        CHECK(c.machine.why() == errc::timed_out);
        CHECK_FALSE(c.machine.left_something());
    }
    SECTION("the node above is gone")
    {
        conversion c{access::shared};
        static_cast<void>(c.sent());
        c.answer_to(0, only(answer::no_node));
        CHECK(c.machine.why() == errc::timed_out);
        CHECK_FALSE(c.machine.left_something());
    }
    SECTION("the session is over")
    {
        conversion c{access::shared};
        static_cast<void>(c.sent());
        c.machine.expired();
        c.machine.connected(2);
        CHECK(c.sent().empty());
        CHECK(c.machine.why() == errc::timed_out);
        CHECK_FALSE(c.machine.left_something());
    }
    SECTION("no hold is known")
    {
        driven<convert_recipe> c{
            holdfast::zookeeper::acquire_plan{.lock = "/a/b", .once = true, .tokens = counted_tokens()},
            naming::curator, access::shared, leftover{}};
        c.machine.connected(1);
        CHECK(c.sent().empty());
        CHECK(c.machine.why() == errc::timed_out);
    }
}

TEST_CASE("a node of a conversion whose answer was lost is looked for behind a write")
{
    auto const to = GENERATE(access::shared, access::exclusive);
    auto const made = "/a/b/" + (to == access::shared ? new_reader : new_writer);
    auto const old = to == access::shared ? writer : reader;
    conversion c{to};
    static_cast<void>(c.sent());
    if (to == access::exclusive) {
        c.answer_to(0, names({old}));
        static_cast<void>(c.sent());
    }
    c.answer_to(0, only(answer::lost));
    c.answer_to(1, only(answer::lost));
    CHECK(c.sent().empty());
    CHECK(c.machine.left_something());
    CHECK(c.machine.what_is_left().node.empty());
    CHECK("/a/b/" + c.machine.what_is_left().prefix == made);
    c.machine.connected(1);
    CHECK(c.sent() == words{"confirm", "data " + made});
    c.answer_to(0, only(answer::ok));
    SECTION("it is there")
    {
        c.answer_to(1, stat(200, 1));
        CHECK(c.sent() == words{"children /a/b"});
        c.answer_to(0, names({old, made.substr(5)}));
        CHECK(c.machine.now() == phase::granted);
        CHECK(c.machine.what_is_left().czxid == 200);
    }
    SECTION("it is not there: made now")
    {
        c.answer_to(1, only(answer::no_node));
        CHECK(c.sent() == words{"plain " + made, "children /a/b"});
    }
    SECTION("the search is lost, too")
    {
        c.answer_to(1, only(answer::lost));
        c.machine.connected(1);
        CHECK(c.sent() == words{"confirm", "data " + made});
    }
    SECTION("given up: what may be there is named")
    {
        c.machine.give_up(make_error_code(errc::unavailable));
        CHECK(c.machine.left_something());
        CHECK("/a/b/" + c.machine.what_is_left().prefix == made);
    }
}

TEST_CASE("a refusal of a conversion is final")
{
    conversion c{access::shared};
    static_cast<void>(c.sent());
    c.answer_to(0, {.what = answer::refused, .code = holdfast::zookeeper::errc::may_not_create});
    CHECK(c.machine.now() == phase::failed);
    CHECK(c.machine.why() == errc::misconfigured);
    CHECK_FALSE(c.machine.left_something());
}

TEST_CASE("the place of a hold with the exhausted sequence is before all that share it")
{
    auto const digits = GENERATE(std::string{"2147483647"}, std::string{"-2147483648"});
    conversion c{access::shared, digits};
    CHECK(c.sent().front() == std::string{"plain /a/b/"} + guid + "__READ__2147483646");
}
