// SPDX-License-Identifier: MIT
#include "machines.hpp"
#include "support/catch.hpp"

#include <holdfast/zookeeper/ephemeral_recipe.hpp>

using holdfast::errc;
using holdfast::test::answer;
using holdfast::test::counted_tokens;
using holdfast::test::created;
using holdfast::test::driven;
using holdfast::test::only;
using holdfast::test::stat;
using holdfast::zookeeper::ephemeral_recipe;
using phase = ephemeral_recipe::phase;
using words = std::vector<std::string>;

namespace {

struct plain : driven<ephemeral_recipe> {
    explicit plain(bool once = false)
        : driven{holdfast::zookeeper::acquire_plan{
              .lock = "/a/b", .content = "me", .once = once, .tokens = counted_tokens()}}
    {
        machine.connected(1);
    }
};

std::string content(char last) { return std::string{"me id=0000000000000000000000000000000"} + last; }

}  // namespace

TEST_CASE("the plain form makes one node at the lock's own path")
{
    plain p;
    CHECK(p.sent() == words{"plain /a/b"});
    p.answer_to(0, created("/a/b", 10));
    CHECK(p.machine.now() == phase::granted);
    CHECK(p.machine.what_is_left().czxid == 10);
    CHECK(p.machine.what_is_left().prefix.empty());
}

TEST_CASE("the plain form watches a node that is there, and tries again when that changes")
{
    plain p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::node_exists));
    CHECK(p.sent() == words{"watch /a/b"});
    auto const watch = p.tag(0);
    p.answer_to(0, stat(9, 7));
    CHECK(p.sent().empty());
    p.machine.noticed(watch);
    CHECK(p.sent() == words{"plain /a/b"});
    p.answer_to(0, only(answer::node_exists));
    CHECK(p.sent() == words{"watch /a/b"});
    p.answer_to(0, only(answer::no_node));  // gone meanwhile
    CHECK(p.sent() == words{"plain /a/b"});
}

TEST_CASE("the plain form does not wait for a node that stays")
{
    plain p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::node_exists));
    CHECK(p.sent() == words{"watch /a/b"});
    p.answer_to(0, stat(9, 0));
    CHECK(p.machine.now() == phase::failed);
    CHECK(p.machine.why() == holdfast::zookeeper::errc::not_ephemeral);
    CHECK_FALSE(p.machine.left_something());
}

TEST_CASE("an attempt of the plain form that may not wait leaves nothing")
{
    plain p{true};
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::node_exists));
    CHECK(p.machine.now() == phase::failed);
    CHECK(p.machine.why() == errc::timed_out);
    CHECK_FALSE(p.machine.left_something());
}

TEST_CASE("the plain form makes the parents of the lock, not the lock")
{
    plain p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::no_node));
    CHECK(p.sent() == words{"container /a", "plain /a/b"});
    CHECK(p.machine.what_is_left().containers == words{"/a"});
    SECTION("made")
    {
        p.answer_to(0, only(answer::ok));
        p.answer_to(1, created("/a/b", 10));
        CHECK(p.machine.now() == phase::granted);
        CHECK(p.machine.what_is_left().containers.empty());
    }
    SECTION("made by somebody meanwhile")
    {
        p.answer_to(0, only(answer::node_exists));
        p.answer_to(1, only(answer::node_exists));
        CHECK(p.sent() == words{"watch /a/b"});
        CHECK_FALSE(p.machine.left_something());
    }
    SECTION("lost")
    {
        p.answer_to(0, only(answer::ok));
        p.answer_to(1, only(answer::lost));
        CHECK(p.machine.left_something());
        p.machine.connected(1);
        CHECK(p.sent() == words{"confirm", "data /a/b"});
        p.machine.expired();
        CHECK(p.machine.left_something());
    }
}

TEST_CASE("a plain node that is not found behind a barrier that was not done is looked for again")
{
    plain p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::lost));
    p.machine.connected(1);
    CHECK(p.sent() == words{"confirm", "data /a/b"});
    p.answer_to(0, only(answer::postponed));
    p.answer_to(1, only(answer::no_node));
    CHECK(p.sent().empty());
    CHECK(p.machine.left_something());
    p.machine.connected(1);
    CHECK(p.sent() == words{"confirm", "data /a/b"});
}

TEST_CASE("a plain node whose answer was lost is ours only with our session and our content", "[lesson-14]")
{
    plain p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::lost));
    CHECK(p.machine.left_something());
    p.machine.connected(1);
    CHECK(p.sent() == words{"confirm", "data /a/b"});
    SECTION("ours")
    {
        p.answer_to(1, stat(10, 1, content('1')));
        CHECK(p.machine.now() == phase::granted);
        CHECK(p.machine.czxid() == 10);
    }
    SECTION("ours, whose owner was asked meanwhile to release the lock")
    {
        p.answer_to(1, stat(10, 1, content('1') + " __REVOKE__"));
        CHECK(p.machine.now() == phase::granted);
    }
    SECTION("of another lock of our session, asked meanwhile to release it")
    {
        p.answer_to(1, stat(10, 1, content('2') + " __REVOKE__"));
        CHECK(p.sent() == words{"plain /a/b"});
    }
    SECTION("of another lock of our session")
    {
        p.answer_to(1, stat(10, 1, content('2')));
        CHECK(p.sent() == words{"plain /a/b"});
    }
    SECTION("made by somebody else")
    {
        p.answer_to(1, stat(10, 2, content('1')));
        CHECK(p.sent() == words{"plain /a/b"});
    }
    SECTION("not there")
    {
        p.answer_to(1, only(answer::no_node));
        CHECK(p.sent() == words{"plain /a/b"});
    }
    SECTION("the session ends")
    {
        p.machine.expired();
        CHECK_FALSE(p.machine.left_something());
        p.machine.connected(2);
        CHECK(p.sent() == words{"plain /a/b"});
    }
}

TEST_CASE("a notice of the plain form does not outlive what it was for")
{
    plain p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::node_exists));
    CHECK(p.sent() == words{"watch /a/b"});
    auto const watch = p.tag(0);
    SECTION("the session ends")
    {
        p.answer_to(0, stat(9, 7));
        p.machine.expired();
        p.machine.noticed(watch);
        CHECK(p.sent().empty());
        p.machine.connected(2);
    }
    SECTION("the answer to the watch is lost, the notice is not")
    {
        p.answer_to(0, only(answer::lost));
        CHECK(p.sent().empty());
        p.machine.noticed(watch);
    }
    CHECK(p.sent() == words{"plain /a/b"});
    p.machine.noticed(watch);
    CHECK(p.sent().empty());
}

TEST_CASE("the plain form does not wait for its own node")
{
    plain p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::node_exists));
    CHECK(p.sent() == words{"watch /a/b"});
    p.answer_to(0, stat(10, 1, content('1')));
    CHECK(p.machine.now() == phase::granted);
    CHECK(p.machine.czxid() == 10);
}
