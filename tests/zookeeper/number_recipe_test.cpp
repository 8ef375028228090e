// SPDX-License-Identifier: MIT
#include "machines.hpp"
#include "support/catch.hpp"

#include <holdfast/zookeeper/number_recipe.hpp>

#include <string>
#include <vector>

using holdfast::errc;
using holdfast::test::answer;
using holdfast::test::counted_tokens;
using holdfast::test::created;
using holdfast::test::driven;
using holdfast::test::names;
using holdfast::test::only;
using holdfast::test::stat;
using holdfast::zookeeper::number_recipe;
using phase = number_recipe::phase;
using words = std::vector<std::string>;

namespace {

std::string const at = "/a/jobs#max/";

/// The name of the mark of the `n`th token for `permits`.
std::string mark(unsigned n, unsigned permits)
{
    return "0000000000000000000000000000000" + std::to_string(n) + "-" + std::to_string(permits);
}

struct three : driven<number_recipe> {
    three()
        : driven{holdfast::zookeeper::acquire_plan{.lock = "/a/jobs#max", .tokens = counted_tokens()}, std::size_t{3}}
    {
        machine.connected(1);
    }

    /// Effects: it has made its node, and gets this list.
    void listed(words const& all)
    {
        CHECK(sent() == words{"plain " + at + mark(1, 3)});
        answer_to(0, created(at + mark(1, 3), 10));
        CHECK(sent() == words{"children /a/jobs#max"});
        answer_to(0, names(all));
    }
};

}  // namespace

TEST_CASE("a number is agreed if all marks say the same")
{
    three m;
    m.listed({mark(1, 3), mark(7, 3)});
    CHECK(m.sent() == words{"write " + at + mark(1, 3)});
    CHECK(m.machine.now() == phase::working);
    m.answer_to(0, only(answer::ok));
    CHECK(m.machine.now() == phase::granted);
    CHECK(m.machine.what_is_left().node == at + mark(1, 3));
}

TEST_CASE("a node that is no mark is left out")
{
    auto const* const foreign =
        GENERATE("readme", "lock-0000000001", "0000000000000000000000000000000g-5", "00000000000000000000000000000001-",
                 "00000000000000000000000000000001-5x", "_c_00000000-0000-0000-0000-000000000000-lock-0000000001");
    three m;
    m.listed({mark(1, 3), foreign});
    CHECK(m.sent() == words{"write " + at + mark(1, 3)});
}

TEST_CASE("an earlier mark that is agreed refuses another number, and a later one does not")
{
    bool const earlier = GENERATE(true, false);
    three m;
    m.listed({mark(1, 3), mark(8, 5)});
    CHECK(m.sent() == words{"data " + at + mark(1, 3), "data " + at + mark(8, 5)});
    m.answer_to(0, stat(10, 1, "asks"));
    CHECK(m.machine.now() == phase::working);
    m.answer_to(1, stat(earlier ? 9 : 11, 2, "agreed"));
    if (!earlier) CHECK(m.sent() == words{"write " + at + mark(1, 3)});
    if (!earlier) return;
    CHECK(m.machine.now() == phase::failed);
    CHECK(m.machine.why() == errc::misconfigured);
    CHECK(m.machine.detail() == "its number of permits is 5, and this client says 3");
    CHECK(m.machine.left_something());
}

TEST_CASE("an earlier mark that only asks is waited for until it is agreed or gone")
{
    bool const gone = GENERATE(true, false);
    three m;
    m.listed({mark(8, 5), mark(1, 3)});
    static_cast<void>(m.sent());
    m.answer_to(0, stat(9, 2, "asks"));
    m.answer_to(1, stat(10, 1, "asks"));
    CHECK(m.machine.now() == phase::working);
    CHECK(m.machine.stalled());
    m.machine.connected(1);  // later
    CHECK(m.sent() == words{"plain " + at + mark(1, 3)});
    m.answer_to(0, only(answer::node_exists));
    CHECK(m.sent() == words{"children /a/jobs#max"});
    m.answer_to(0, names({mark(8, 5), mark(1, 3)}));
    static_cast<void>(m.sent());
    m.answer_to(0, gone ? only(answer::no_node) : stat(9, 2, "agreed"));
    m.answer_to(1, stat(10, 1, "asks"));
    if (gone) CHECK(m.sent() == words{"write " + at + mark(1, 3)});
    CHECK(m.machine.now() == (gone ? phase::working : phase::failed));
}

TEST_CASE("each answer about a number can be lost; no second mark is made in a session")
{
    auto const lost_at = GENERATE(0, 1, 2, 3);
    three m;
    for (int step = 0, lost = 0; m.machine.now() == phase::working && step < 20; ++step) {
        auto const what = m.sent();
        REQUIRE_FALSE(what.empty());
        CHECK((what[0].find("plain") == std::string::npos || what[0] == "plain " + at + mark(1, 3)));
        if (step == lost_at && lost++ == 0) {
            m.answer_to(0, only(answer::lost));
            CHECK(m.machine.stalled());
            CHECK(m.machine.left_something());
            m.machine.connected(1);
            continue;
        }
        if (what[0].starts_with("plain")) m.answer_to(0, step == 0 ? created(at, 10) : only(answer::node_exists));
        if (what[0].starts_with("children")) m.answer_to(0, names({mark(1, 3), mark(8, 5)}));
        if (what[0].starts_with("write")) m.answer_to(0, only(answer::ok));
        if (!what[0].starts_with("data")) continue;
        m.answer_to(0, stat(10, 1, "asks"));
        m.answer_to(1, stat(11, 2, "asks"));
    }
    CHECK(m.machine.now() == phase::granted);
}

TEST_CASE("missing containers are made before a mark, and a new session makes a new mark")
{
    three m;
    CHECK(m.sent() == words{"plain " + at + mark(1, 3)});
    m.answer_to(0, only(answer::no_node));
    CHECK(m.sent() == words{"container /a/jobs#max", "plain " + at + mark(1, 3)});
    m.machine.expired();
    CHECK(m.sent().empty());
    m.machine.connected(2);
    CHECK(m.sent().back() == "plain " + at + mark(2, 3));
}

TEST_CASE("a mark that a person has removed is made again; a right that is missing is told")
{
    three m;
    m.listed({});
    CHECK(m.sent() == words{"plain " + at + mark(2, 3)});
    m.answer_to(0, {.what = answer::refused, .code = holdfast::zookeeper::errc::may_not_create});
    CHECK(m.machine.now() == phase::failed);
    CHECK(m.machine.why() == holdfast::zookeeper::errc::may_not_create);
    CHECK(m.machine.detail().empty());
}
