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
                 naming::curator, to, held(to == access::shared ? access::exclusive : access::shared, digits),
                 std::uint64_t{100} * 64 + 5}
    {
        machine.connected(1);
    }
};

std::string const writer = "_c_held-__WRIT__0000000007";
std::string const reader = "_c_held-__READ__0000000007";
std::string const new_reader = std::string{guid} + "converted-__READ__0000000007";
std::string const new_writer = std::string{guid} + "converted-__WRIT__0000000007";
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
    // The waiter, whose node was made in between, has one from 101 * 64 on.
    CHECK(c.machine.first_token() == 100 * 64 + 6);
}

TEST_CASE("a reader becomes a writer in its own place, if no other client has the lock")
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
        c.answer_to(1, names({reader, new_writer, "_c_other-__READ__0000000008",
                              "_c_other-converted-__WRIT__0000000008", "_c_third-__WRIT__0000000009"}));
        CHECK(c.machine.why() == errc::timed_out);
    }
    SECTION("another one has tried the same, and gone")
    {
        c.answer_to(1, names({reader, new_writer, "_c_other-converted-__WRIT__0000000008"}));
        CHECK(c.machine.now() == phase::granted);
        CHECK(c.machine.first_token() == 200 * 64);
    }
    SECTION("others wait, a reader behind a writer among them")
    {
        c.answer_to(1, names({"_c_a-__READ__0000000011", reader, new_writer, "_c_b-__WRIT__0000000012", waiter}));
        CHECK(c.sent() == words{"data /a/b/" + waiter});
        SECTION("the first was made before: its token is greater")
        {
            c.answer_to(0, stat(150, 5));
            CHECK(c.machine.now() == phase::granted);
            CHECK(c.machine.first_token() == 149 * 64 + 1);
        }
        SECTION("right before the hold's own")
        {
            c.answer_to(0, stat(101, 5));
            CHECK(c.machine.now() == phase::granted);
            CHECK(c.machine.first_token() == 100 * 64 + 6);
        }
        SECTION("it was made later")
        {
            c.answer_to(0, stat(250, 5));
            CHECK(c.machine.first_token() == 200 * 64);
        }
        SECTION("it is gone: all is looked at again")
        {
            c.answer_to(0, only(answer::no_node));
            CHECK(c.sent() == words{"children /a/b"});
            c.answer_to(0, names({reader, new_writer}));
            CHECK(c.machine.now() == phase::granted);
            CHECK(c.machine.first_token() == 200 * 64);
        }
        SECTION("the answer is lost")
        {
            c.answer_to(0, only(answer::lost));
            c.machine.connected(1);
            CHECK(c.sent() == words{"children /a/b"});
        }
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

TEST_CASE("a reader beside one that may have the lock is refused before anything is made")
{
    auto const others = GENERATE(words{"_c_other-__READ__0000000003"}, words{waiter, "x__rlock__0000000008"},
                                 words{waiter, "_c_other-converted-__READ__0000000010"},
                                 words{"_c_a-lock-2147483647", "_c_b-__READ__2147483647"});
    conversion c{access::exclusive};
    static_cast<void>(c.sent());
    auto all = others;
    all.push_back(reader);
    c.answer_to(0, names(all));
    CHECK(c.machine.now() == phase::failed);
    CHECK(c.machine.why() == errc::timed_out);
    CHECK_FALSE(c.machine.left_something());
    CHECK(c.sent().empty());
}

TEST_CASE("a reader that has become a writer so often that no token is left is refused")
{
    auto const used = GENERATE(64U - 3, 64U - 2);
    driven<convert_recipe> c{
        holdfast::zookeeper::acquire_plan{.lock = "/a/b", .once = true, .tokens = counted_tokens()}, naming::curator,
        access::exclusive, held(access::shared, "0000000007"), std::uint64_t{100} * 64 + used};
    c.machine.connected(1);
    static_cast<void>(c.sent());
    c.answer_to(0, names({reader, waiter}));
    static_cast<void>(c.sent());
    c.answer_to(0, created("/a/b/" + new_writer, 200));
    c.answer_to(1, names({reader, new_writer, waiter}));
    CHECK(c.sent() == words{"data /a/b/" + waiter});
    c.answer_to(0, stat(101, 5));
    CHECK((c.machine.now() == phase::granted) == (used == 64 - 3));
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
            naming::curator, access::shared, leftover{}, 0U};
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
    CHECK(c.sent().front() == std::string{"plain /a/b/"} + guid + "converted-__READ__2147483646");
}
