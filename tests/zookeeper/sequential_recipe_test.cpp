// SPDX-License-Identifier: MIT
#include "machines.hpp"
#include "support/catch.hpp"

#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/sequential_recipe.hpp>

using holdfast::errc;
using holdfast::test::answer;
using holdfast::test::counted_tokens;
using holdfast::test::created;
using holdfast::test::driven;
using holdfast::test::names;
using holdfast::test::node;
using holdfast::test::only;
using holdfast::test::stat;
using holdfast::zookeeper::naming;
using holdfast::zookeeper::sequential_recipe;
using phase = sequential_recipe::phase;
using words = std::vector<std::string>;

namespace {

constexpr auto first = "0000000001";
constexpr auto second = "0000000002";
constexpr auto third = "0000000003";
constexpr auto last = "2147483647";

struct queue : driven<sequential_recipe> {
    explicit queue(bool once = false, bool look_first = false)
        : driven{holdfast::zookeeper::acquire_plan{
                     .lock = "/a/b", .once = once, .look_first = look_first, .tokens = counted_tokens()},
                 naming::curator}
    {
    }

    /// Effects: makes the node with `sequence` and shows `others` beside it.
    void enter(std::string const& sequence, words others, std::int64_t czxid = 10)
    {
        machine.connected(1);
        static_cast<void>(sent());
        answer_to(0, created("/a/b/" + node(1, sequence), czxid));
        others.push_back(node(1, sequence));
        answer_to(1, names(std::move(others)));
    }
};

}  // namespace

TEST_CASE("a free lock is had in one round trip: create and children together")
{
    queue q;
    q.machine.connected(1);
    CHECK(q.sent() == words{"create /a/b/" + node(1, ""), "children /a/b"});
    q.answer_to(0, created("/a/b/" + node(1, first), 10));
    CHECK(q.machine.now() == phase::working);
    q.answer_to(1, names({node(1, first)}));
    CHECK(q.machine.now() == phase::granted);
    CHECK(q.machine.czxid() == 10);
    CHECK(q.machine.what_is_left().node == "/a/b/" + node(1, first));
}

TEST_CASE("one who is not first watches the one before, and looks again when it changes")
{
    queue q;
    q.enter(third, {node(8, first), node(9, second), node(7, "0000000004")});
    CHECK(q.sent() == words{"watch /a/b/" + node(9, second)});
    auto const watch = q.tag(0);
    q.answer_to(0, stat(9, 5));
    CHECK(q.sent().empty());
    q.machine.noticed(watch);
    CHECK(q.sent() == words{"children /a/b"});
    q.answer_to(0, names({node(8, first), node(1, third)}));
    CHECK(q.sent() == words{"watch /a/b/" + node(8, first)});
    q.answer_to(0, only(answer::no_node));  // gone between the list and the watch
    CHECK(q.sent() == words{"children /a/b"});
    q.answer_to(0, names({node(1, third)}));
    CHECK(q.machine.now() == phase::granted);
}

TEST_CASE("a notice that comes before the answer to its watch counts")
{
    queue q;
    q.enter(second, {node(9, first)});
    CHECK(q.sent().size() == 1);
    q.machine.noticed(q.tag(0));
    CHECK(q.sent() == words{"children /a/b"});
}

TEST_CASE("sequences are numbers, not text; other clients' names and strangers are known", "[lesson-16]")
{
    queue q;
    q.enter("0000000100",
            {"_c_zzz-lock-0000000099", "0123__lock__0000000050", "note", "lock-", "_c_a-lock-12x4567890"});
    CHECK(q.sent() == words{"watch /a/b/_c_zzz-lock-0000000099"});
}

TEST_CASE(
    "a node whose number has passed the end of the counter is told from others by its czxid, whatever their numbers")
{
    auto const mine = GENERATE(std::string{"-2147483648"}, std::string{last});
    auto const other = GENERATE(std::string{"-2147483647"}, std::string{last});
    queue q;
    q.enter(mine, {node(9, other)}, 50);
    CHECK(q.sent() == words{"data /a/b/" + node(9, other)});
    auto const made = GENERATE(40, 60);
    q.answer_to(0, stat(made, 1));
    if (made < 50)
        CHECK(q.sent() == words{"watch /a/b/" + node(9, other)});
    else
        CHECK(q.machine.now() == phase::granted);
}

TEST_CASE("where the sequence is exhausted, the czxid decides")
{
    queue q;
    q.enter(last, {node(9, last), node(8, last), node(7, last), node(6, second)}, 50);
    CHECK(q.sent() == words{"data /a/b/" + node(9, last), "data /a/b/" + node(8, last), "data /a/b/" + node(7, last)});
    SECTION("the nearest one made before is watched")
    {
        q.answer_to(0, stat(60, 1));
        q.answer_to(1, stat(20, 1));
        q.answer_to(2, stat(30, 1));
        CHECK(q.sent() == words{"watch /a/b/" + node(7, last)});
    }
    SECTION("with none made before it is the one with a smaller sequence")
    {
        q.answer_to(0, stat(60, 1));
        q.answer_to(1, only(answer::no_node));
        q.answer_to(2, stat(70, 1));
        CHECK(q.sent() == words{"watch /a/b/" + node(6, second)});
    }
    SECTION("a lost answer has all looked at again")
    {
        q.answer_to(0, only(answer::lost));
        q.machine.connected(1);
        CHECK(q.sent() == words{"children /a/b"});
    }
}

TEST_CASE("however many share the exhausted sequence, each is asked for, and the nearest before is watched")
{
    constexpr std::size_t others = 70'000;
    auto const other = [](std::size_t i) { return "_c_" + std::to_string(i) + "-lock-2147483647"; };
    words all;
    for (std::size_t i = 0; i < others; ++i) all.push_back(other(i));
    queue q;
    q.enter(last, all, 500'000);
    std::size_t asked = 0;
    for (auto sent = q.sent(); sent.front().starts_with("data"); sent = q.sent()) {
        REQUIRE(sent.size() <= 1'000);
        for (std::size_t i = 0; i < sent.size(); ++i) q.answer_to(i, stat(static_cast<std::int64_t>(asked++) + 1, 1));
        if (asked == others) break;
    }
    CHECK(asked == others);
    CHECK(q.sent() == words{"watch /a/b/" + other(others - 1)});
}

TEST_CASE("of those that share the exhausted sequence the first made has the lock")
{
    queue q;
    q.enter(last, {node(9, last)}, 50);
    CHECK(q.sent().size() == 1);
    q.answer_to(0, stat(60, 1));
    CHECK(q.machine.now() == phase::granted);
}

TEST_CASE("an attempt that may not wait sets no watch and names what to remove")
{
    queue q{true};
    q.enter(second, {node(9, first)});
    CHECK(q.sent().empty());
    CHECK(q.machine.now() == phase::failed);
    CHECK(q.machine.why() == errc::timed_out);
    CHECK(q.machine.left_something());
    CHECK(q.machine.what_is_left().node == "/a/b/" + node(1, second));
}

TEST_CASE(
    "missing parents are made right before the node, from the bottom up, and again when they are collected meanwhile")
{
    queue q;
    q.machine.connected(1);
    static_cast<void>(q.sent());
    q.answer_to(0, only(answer::no_node));
    q.answer_to(1, only(answer::no_node));
    auto const create = "create /a/b/" + node(1, "");
    CHECK(q.sent() == words{"container /a/b", create, "children /a/b"});
    q.answer_to(0, only(answer::no_node));
    q.answer_to(1, only(answer::no_node));
    auto const all = words{"container /a", "container /a/b", create, "children /a/b"};
    CHECK(q.sent() == all);
    CHECK(q.machine.what_is_left().containers == words{"/a", "/a/b"});
    q.answer_to(0, only(answer::ok));
    q.answer_to(1, only(answer::no_node));  // the server collected /a
    q.answer_to(2, only(answer::no_node));
    CHECK(q.sent() == all);
    SECTION("made")
    {
        q.answer_to(0, only(answer::node_exists));
        q.answer_to(1, only(answer::ok));
        q.answer_to(2, created("/a/b/" + node(1, first), 10));
        q.answer_to(3, names({node(1, first)}));
        CHECK(q.machine.now() == phase::granted);
        CHECK(q.machine.what_is_left().containers.empty());
    }
    SECTION("one may not be made, but is there")
    {
        q.answer_to(0, {.what = answer::refused, .code = holdfast::zookeeper::errc::may_not_create});
        q.answer_to(1, only(answer::ok));
        q.answer_to(2, created("/a/b/" + node(1, first), 10));
        q.answer_to(3, names({node(1, first)}));
        CHECK(q.machine.now() == phase::granted);
    }
    SECTION("one may not be made, and is not there")
    {
        q.answer_to(0, {.what = answer::refused, .code = holdfast::zookeeper::errc::may_not_create});
        q.answer_to(1, only(answer::no_node));
        q.answer_to(2, only(answer::no_node));
        CHECK(q.machine.now() == phase::failed);
        CHECK(q.machine.why() == holdfast::zookeeper::errc::may_not_create);
    }
    SECTION("not even the first can be made")
    {
        q.answer_to(0, only(answer::no_node));
        q.answer_to(1, only(answer::no_node));
        q.answer_to(2, only(answer::no_node));
        CHECK(q.machine.now() == phase::failed);
        CHECK(q.machine.why() == errc::misconfigured);
    }
    SECTION("lost: looked for behind a write; what was made above is not forgotten, whatever becomes of the session")
    {
        for (std::size_t i = 0; i < 4; ++i) q.answer_to(i, only(answer::lost));
        CHECK(q.sent().empty());
        q.machine.connected(1);
        CHECK(q.sent() == words{"confirm", "children /a/b"});
        q.machine.expired();
        CHECK(q.machine.left_something());
        q.machine.give_up(make_error_code(errc::timed_out));
        CHECK(q.machine.what_is_left().containers == words{"/a", "/a/b"});
    }
}

TEST_CASE("who may not list those who wait makes no node")
{
    queue q{false, true};
    q.machine.connected(1);
    CHECK(q.sent() == words{"children /a/b"});
    SECTION("refused")
    {
        q.answer_to(0, {.what = answer::refused, .code = holdfast::zookeeper::errc::may_not_read});
        CHECK(q.machine.now() == phase::failed);
        CHECK(q.machine.why() == errc::misconfigured);
        CHECK_FALSE(q.machine.left_something());
    }
    SECTION("lost, then allowed, and not asked again in the next session")
    {
        q.answer_to(0, only(answer::lost));
        CHECK(q.sent().empty());
        q.machine.connected(1);
        CHECK(q.sent() == words{"children /a/b"});
        CHECK_FALSE(q.machine.may_read());
        q.answer_to(0, names({}));
        CHECK(q.machine.may_read());
        CHECK(q.sent() == words{"create /a/b/" + node(1, ""), "children /a/b"});
        q.machine.expired();
        q.machine.connected(2);
        CHECK(q.sent() == words{"create /a/b/" + node(2, ""), "children /a/b"});
    }
    SECTION("not there: made with the node")
    {
        q.answer_to(0, only(answer::no_node));
        CHECK(q.sent() == words{"container /a/b", "create /a/b/" + node(1, ""), "children /a/b"});
    }
}

TEST_CASE("a create whose answer was lost is looked for behind a write and never repeated blindly", "[lesson-14]")
{
    queue q;
    q.machine.connected(1);
    static_cast<void>(q.sent());
    q.answer_to(0, only(answer::lost));
    q.answer_to(1, only(answer::lost));
    CHECK(q.sent().empty());
    CHECK(q.machine.left_something());
    q.machine.connected(1);
    CHECK(q.sent() == words{"confirm", "children /a/b"});
    q.answer_to(0, only(answer::ok));
    SECTION("it is there: adopted, once its session is seen to be ours")
    {
        q.answer_to(1, names({node(1, first), node(9, second)}));
        CHECK(q.sent() == words{"data /a/b/" + node(1, first)});
        q.answer_to(0, stat(10, 1));
        CHECK(q.sent() == words{"children /a/b"});
        q.answer_to(0, names({node(1, first), node(9, second)}));
        CHECK(q.machine.now() == phase::granted);
        CHECK(q.machine.czxid() == 10);
    }
    SECTION("it is of an earlier session: not ours, and not asked for again under the same GUID")
    {
        q.answer_to(1, names({node(1, first)}));
        static_cast<void>(q.sent());
        q.answer_to(0, stat(10, 77));
        CHECK(q.machine.now() == phase::working);
        CHECK(q.sent() == words{"create /a/b/" + node(2, ""), "children /a/b"});
    }
    SECTION("it is not there: made now")
    {
        q.answer_to(1, names({node(9, second)}));
        CHECK(q.sent() == words{"create /a/b/" + node(1, ""), "children /a/b"});
    }
    SECTION("it goes while it is looked at")
    {
        q.answer_to(1, names({node(1, first)}));
        static_cast<void>(q.sent());
        q.answer_to(0, only(answer::no_node));
        CHECK(q.sent() == words{"create /a/b/" + node(1, ""), "children /a/b"});
    }
    SECTION("the search is lost, too")
    {
        q.answer_to(1, only(answer::lost));
        q.machine.connected(1);
        CHECK(q.sent() == words{"confirm", "children /a/b"});
    }
}

TEST_CASE("a node that is not found behind a barrier that was not done is not made again")
{
    queue q;
    q.machine.connected(1);
    static_cast<void>(q.sent());
    q.answer_to(0, only(answer::lost));
    q.answer_to(1, only(answer::lost));
    q.machine.connected(1);
    CHECK(q.sent() == words{"confirm", "children /a/b"});
    q.answer_to(0, only(answer::postponed));
    q.answer_to(1, names({}));
    CHECK(q.sent().empty());
    q.machine.connected(1);
    CHECK(q.sent() == words{"confirm", "children /a/b"});
}

TEST_CASE("a create that was answered is not looked for when only the list is lost")
{
    queue q;
    q.machine.connected(1);
    static_cast<void>(q.sent());
    q.answer_to(0, created("/a/b/" + node(1, first), 10));
    q.answer_to(1, only(answer::lost));
    q.machine.connected(1);
    CHECK(q.sent() == words{"children /a/b"});
}

TEST_CASE("after the end of the session it begins again with another GUID", "[lesson-14]")
{
    queue q;
    q.enter(second, {node(9, first)});
    static_cast<void>(q.sent());
    q.answer_to(0, stat(9, 5));
    q.machine.expired();
    CHECK(q.sent().empty());
    CHECK_FALSE(q.machine.left_something());
    q.machine.connected(2);
    CHECK(q.sent() == words{"create /a/b/" + node(2, ""), "children /a/b"});
}

TEST_CASE("one whose node was taken away makes another")
{
    queue q;
    q.enter(second, {node(9, first)});
    static_cast<void>(q.sent());
    q.machine.noticed(q.tag(0));
    static_cast<void>(q.sent());
    q.answer_to(0, names({}));
    CHECK(q.machine.now() == phase::working);
    CHECK(q.sent() == words{"create /a/b/" + node(2, ""), "children /a/b"});
}

TEST_CASE("a refusal is final; giving up while the create is under way leaves something in doubt")
{
    queue q;
    q.machine.connected(1);
    static_cast<void>(q.sent());
    SECTION("refused")
    {
        q.answer_to(0, {.what = answer::refused, .code = holdfast::zookeeper::errc::may_not_create});
        CHECK(q.machine.now() == phase::failed);
        CHECK(q.machine.why() == errc::misconfigured);
        CHECK_FALSE(q.machine.left_something());
    }
    SECTION("given up")
    {
        q.machine.give_up(make_error_code(errc::timed_out));
        CHECK(q.machine.left_something());
        CHECK(q.machine.what_is_left().node.empty());
        CHECK(q.machine.what_is_left().prefix == node(1, ""));
        q.answer_to(0, created("/a/b/" + node(1, first), 10));
        CHECK(q.machine.now() == phase::failed);
    }
}

TEST_CASE("answers to an earlier step are ignored")
{
    queue q;
    q.machine.connected(1);
    static_cast<void>(q.sent());
    auto const children = q.tag(1);
    q.answer_to(0, only(answer::no_node));
    static_cast<void>(q.sent());
    q.machine.answered(children, names({node(9, first)}));
    CHECK(q.sent().empty());
    CHECK(q.machine.now() == phase::working);
}
