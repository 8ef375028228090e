// SPDX-License-Identifier: MIT
#include "machines.hpp"
#include "support/catch.hpp"

#include <holdfast/zookeeper/erase_machine.hpp>
#include <holdfast/zookeeper/error.hpp>

using holdfast::errc;
using holdfast::test::answer;
using holdfast::test::driven;
using holdfast::test::names;
using holdfast::test::only;
using holdfast::test::stat;
using holdfast::zookeeper::erase_machine;
using holdfast::zookeeper::leftover;
using words = std::vector<std::string>;

namespace {

leftover known() { return {"/a", "_c_1-lock-", "/a/_c_1-lock-0000000001", 10, {}, 1}; }
leftover unknown() { return {"/a", "_c_1-lock-", {}, 0, {}, 1}; }
leftover plain() { return {"/a", {}, {}, 10, "me", 1}; }

}  // namespace

TEST_CASE("a delete is repeated until it is confirmed", "[lesson-15]")
{
    driven<erase_machine> e{known()};
    e.machine.connected(1);
    CHECK(e.sent() == words{"erase /a/_c_1-lock-0000000001"});
    SECTION("at once")
    {
        e.answer_to(0, only(answer::ok));
        CHECK(e.machine.done());
        CHECK_FALSE(e.machine.outcome());
    }
    SECTION("the node was not there: it was not ours any more")
    {
        e.answer_to(0, only(answer::no_node));
        CHECK(e.machine.outcome() == errc::not_owner);
    }
    SECTION("it is gone after an answer that was lost: that was us")
    {
        e.answer_to(0, only(answer::lost));
        CHECK_FALSE(e.machine.done());
        CHECK(e.sent().empty());
        e.machine.connected(1);
        CHECK(e.sent() == words{"erase /a/_c_1-lock-0000000001"});
        e.answer_to(0, only(answer::no_node));
        CHECK(e.machine.done());
        CHECK_FALSE(e.machine.outcome());
    }
    SECTION("the session is over, and the node with it")
    {
        e.answer_to(0, only(answer::lost));
        e.machine.expired();
        CHECK(e.machine.done());
        CHECK_FALSE(e.machine.outcome());
    }
    SECTION("a session that did not make the node is connected")
    {
        e.answer_to(0, only(answer::lost));
        e.machine.connected(2);
        CHECK(e.machine.done());
        CHECK(e.sent().empty());
    }
    SECTION("refused")
    {
        e.answer_to(0, {.what = answer::refused, .code = holdfast::zookeeper::errc::may_not_delete});
        CHECK(e.machine.settled());
        CHECK(e.machine.outcome() == errc::misconfigured);
        CHECK_FALSE(e.machine.done());  // the lock is taken as long as the node is there
        CHECK(e.sent().empty());
        e.machine.connected(1);
        CHECK(e.sent() == words{"erase /a/_c_1-lock-0000000001"});
        e.answer_to(0, only(answer::ok));
        CHECK(e.machine.done());
    }
    SECTION("refused again and again, it is repeated ever more seldom")
    {
        std::vector<int> waits;
        for (int i = 0; i < 9; ++i) {
            e.answer_to(0, {.what = answer::refused, .code = holdfast::zookeeper::errc::may_not_delete});
            waits.push_back(0);
            for (e.machine.connected(1); e.sent().empty(); e.machine.connected(1)) REQUIRE(++waits.back() < 1000);
        }
        CHECK(waits == std::vector<int>{0, 1, 3, 7, 15, 31, 63, 63, 63});
    }
}

TEST_CASE("a node that may have been made is looked for by its GUID behind a write", "[lesson-15]")
{
    driven<erase_machine> e{unknown()};
    e.machine.connected(1);
    CHECK(e.sent() == words{"confirm", "children /a"});
    e.answer_to(0, only(answer::ok));
    SECTION("it is there")
    {
        e.answer_to(1, names({"_c_2-lock-0000000001", "_c_1-lock-0000000002"}));
        CHECK(e.sent() == words{"erase /a/_c_1-lock-0000000002"});
    }
    SECTION("it is not")
    {
        e.answer_to(1, names({"_c_2-lock-0000000001"}));
        CHECK(e.machine.done());
        CHECK_FALSE(e.machine.outcome());
    }
    SECTION("not even the lock is")
    {
        e.answer_to(1, only(answer::no_node));
        CHECK(e.machine.done());
    }
}

TEST_CASE("an answer from behind a barrier that was not done is not taken for one of the next round")
{
    for (bool const queued : {true, false}) {
        driven<erase_machine> e{queued ? unknown() : plain()};
        e.machine.connected(1);
        CHECK(e.sent().size() == 2);
        auto const behind = e.tag(1);
        e.answer_to(0, only(answer::postponed));
        e.machine.connected(1);
        CHECK(e.sent().size() == 2);
        e.machine.answered(behind, queued ? names({}) : only(answer::no_node));
        CHECK_FALSE(e.machine.done());
        e.answer_to(0, only(answer::ok));
        e.answer_to(1, queued ? names({"_c_1-lock-0000000002"}) : stat(10, 1, "me"));
        CHECK(e.sent().size() == 1);
    }
}

TEST_CASE("what is not found behind a barrier that was not done may be there all the same")
{
    auto const what = GENERATE(answer::postponed, answer::lost);
    for (bool const queued : {true, false}) {
        driven<erase_machine> e{queued ? unknown() : plain()};
        auto const search = queued ? words{"confirm", "children /a"} : words{"confirm", "data /a"};
        e.machine.connected(1);
        CHECK(e.sent() == search);
        e.answer_to(0, only(what));
        e.answer_to(1, queued ? names({}) : only(answer::no_node));
        CHECK_FALSE(e.machine.settled());
        CHECK(e.sent().empty());
        e.machine.connected(1);
        CHECK(e.sent() == search);
    }
}

TEST_CASE("a node at the lock's own path is removed only where it is ours")
{
    driven<erase_machine> e{plain()};
    e.machine.connected(1);
    CHECK(e.sent() == words{"confirm", "data /a"});
    SECTION("ours")
    {
        e.answer_to(1, stat(10, 1, "me"));
        CHECK(e.sent() == words{"erase /a"});
        e.answer_to(0, only(answer::ok));
        CHECK(e.machine.done());
        CHECK_FALSE(e.machine.outcome());
    }
    SECTION("another one's")
    {
        e.answer_to(1, stat(11, 1, "me"));
        CHECK(e.machine.done());
        CHECK(e.sent().empty());
        CHECK(e.machine.outcome() == errc::not_owner);
    }
    SECTION("another one's after our delete, the answer to which was lost")
    {
        e.answer_to(1, stat(10, 1, "me"));
        static_cast<void>(e.sent());
        e.answer_to(0, only(answer::lost));
        e.machine.connected(1);
        CHECK(e.sent() == words{"confirm", "data /a"});
        e.answer_to(1, stat(12, 3, "you"));
        CHECK(e.machine.done());
        CHECK_FALSE(e.machine.outcome());
    }
}

TEST_CASE("a node at the lock's own path that may have been made is removed, also if its owner was asked to release it")
{
    std::string const content = "me id=00000000000000000000000000000001";
    driven<erase_machine> e{leftover{"/a", {}, {}, 0, content, 1}};
    e.machine.connected(1);
    CHECK(e.sent() == words{"confirm", "data /a"});
    auto const* const message = GENERATE("", " __REVOKE__");
    e.answer_to(1, stat(10, 1, content + message));
    CHECK(e.sent() == words{"erase /a"});
}

TEST_CASE("containers that were made for a node which was never there are removed, from the bottom up")
{
    driven<erase_machine> e{leftover{"/a/b", "_c_1-lock-", {}, 0, {}, 1, {"/a", "/a/b"}}};
    auto const container = stat(3, holdfast::zookeeper::container_owner);
    SECTION("the node is looked for first")
    {
        e.machine.connected(1);
        CHECK(e.sent() == words{"confirm", "children /a/b"});
        e.answer_to(0, only(answer::ok));
        SECTION("it was there: the server collects them")
        {
            e.answer_to(1, names({std::string{"_c_1-lock-0000000003"}}));
            CHECK(e.sent() == words{"erase /a/b/" + std::string{"_c_1-lock-0000000003"}});
            e.answer_to(0, only(answer::ok));
            CHECK(e.machine.done());
            return;
        }
        SECTION("not there") { e.answer_to(1, names({})); }
    }
    SECTION("its session is over, and the containers are not")
    {
        e.machine.expired();
        CHECK(e.machine.settled());
        CHECK_FALSE(e.machine.done());
        CHECK(e.sent().empty());
        e.machine.connected(2);
    }
    CHECK(e.sent() == words{"data /a/b"});
    SECTION("empty")
    {
        e.answer_to(0, container);
        CHECK(e.sent() == words{"erase /a/b"});
        e.answer_to(0, only(answer::lost));
        CHECK(e.sent().empty());
        e.machine.connected(2);
        CHECK(e.sent() == words{"data /a/b"});
        e.answer_to(0, only(answer::no_node));
        CHECK(e.sent() == words{"data /a"});
        e.answer_to(0, container);
        CHECK(e.sent() == words{"erase /a"});
        e.answer_to(0, only(answer::ok));
        CHECK(e.machine.done());
    }
    SECTION("somebody uses it")
    {
        e.answer_to(0, container);
        CHECK(e.sent() == words{"erase /a/b"});
        e.answer_to(0, {.what = answer::refused, .code = holdfast::zookeeper::errc::server_error});
        CHECK(e.machine.done());
        CHECK_FALSE(e.machine.refused());
        CHECK(e.sent().empty());
    }
    SECTION("it is no container")
    {
        e.answer_to(0, stat(3, 0));
        CHECK(e.machine.done());
        CHECK(e.sent().empty());
    }
}
