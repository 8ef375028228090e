// SPDX-License-Identifier: MIT
#include "machines.hpp"
#include "support/catch.hpp"

#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/permit_recipe.hpp>

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
using holdfast::zookeeper::permit_recipe;
using phase = permit_recipe::phase;
using words = std::vector<std::string>;

namespace {

std::string prefix(unsigned n) { return "_c_00000000-0000-0000-0000-00000000000" + std::to_string(n) + "-lease-"; }
std::string const ours = prefix(1) + "0000000007";

struct permit : driven<permit_recipe> {
    explicit permit(bool once = false, bool look_first = false)
        : driven{holdfast::zookeeper::acquire_plan{.lock = "/p/leases",
                                                   .content = "me",
                                                   .once = once,
                                                   .look_first = look_first,
                                                   .tokens = counted_tokens()},
                 std::size_t{2}}
    {
        machine.connected(1);
    }

    /// Effects: its node is made, and the others are there.
    void make(words others)
    {
        static_cast<void>(sent());
        answer_to(0, created("/p/leases/" + ours, 10));
        others.push_back(ours);
        answer_to(1, names(std::move(others)));
    }
};

std::string const kazoo_prefix = "00000000000000000000000000000001-lease-";
std::string const kazoo_ours = kazoo_prefix + "0000000007";

struct kazoo_permit : driven<permit_recipe> {
    kazoo_permit()
        : driven{holdfast::zookeeper::acquire_plan{.lock = "/p", .content = "me", .tokens = counted_tokens()},
                 std::size_t{2}, holdfast::zookeeper::permits::kazoo}
    {
        machine.connected(1);
    }
};

}  // namespace

TEST_CASE("a permit is a node below the leases, of which there are no more than permits")
{
    permit p;
    CHECK(p.sent() == words{"create /p/leases/" + prefix(1), "watch children /p/leases"});
    p.answer_to(0, created("/p/leases/" + ours, 10));
    CHECK(p.machine.now() == phase::working);
    p.answer_to(1, names({"_c_x-lease-0000000003", ours}));
    CHECK(p.machine.now() == phase::granted);
    auto const left = p.machine.what_is_left();
    CHECK(left.node == "/p/leases/" + ours);
    CHECK(left.czxid == 10);
    CHECK(left.prefix == prefix(1));
}

TEST_CASE("with too many nodes it waits until any of them has gone")
{
    permit p;
    p.make({"a-lease-0000000001", "b-lease-0000000002"});
    CHECK(p.machine.now() == phase::working);
    CHECK(p.machine.waits());
    auto const watch = p.tag(1);
    CHECK(p.sent().empty());
    p.machine.noticed(watch);
    CHECK(p.sent() == words{"watch children /p/leases"});
    auto const again = p.tag(0);
    p.answer_to(0, names({"b-lease-0000000002", "c-lease-0000000008", ours}));  // one went, one came
    CHECK(p.machine.waits());
    p.machine.noticed(watch);  // of an earlier list
    CHECK(p.sent().empty());
    p.machine.noticed(again);
    CHECK(p.sent() == words{"watch children /p/leases"});
    p.answer_to(0, names({"c-lease-0000000008", ours}));
    CHECK(p.machine.now() == phase::granted);
}

TEST_CASE("a notice of an earlier watch that comes before the list is not waited for again")
{
    permit p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::postponed));
    p.answer_to(1, names({"a-lease-0000000001", "b-lease-0000000002"}));
    p.machine.connected(1);
    CHECK(p.sent() == words{"create /p/leases/" + prefix(1), "watch children /p/leases"});
    p.machine.noticed(p.tag(1));  // of its own node
    p.answer_to(0, created("/p/leases/" + ours, 10));
    p.answer_to(1, names({"a-lease-0000000001", "b-lease-0000000002", ours}));
    CHECK_FALSE(p.machine.waits());
    CHECK(p.sent() == words{"watch children /p/leases"});
    p.answer_to(0, names({"a-lease-0000000001", ours}));
    CHECK(p.machine.now() == phase::granted);
}

TEST_CASE("nodes with other names count, as Curator counts them")
{
    permit p{true};
    p.make({"x", "y"});
    CHECK(p.machine.now() == phase::failed);
    CHECK(p.machine.why() == errc::timed_out);
    CHECK(p.machine.left_something());
}

TEST_CASE("a permit of kazoo's reads the number beside its first list, and is refused if that is another one")
{
    kazoo_permit p;
    CHECK(p.sent() == words{"create /p/" + kazoo_prefix, "data /p", "watch children /p"});
    p.answer_to(0, created("/p/" + kazoo_ours, 10));
    SECTION("the same")
    {
        p.answer_to(1, {.what = answer::ok, .text = " 2\n"});
        p.answer_to(2, names({"x", "y", kazoo_ours}));
        CHECK(p.machine.waits());
        p.machine.noticed(p.tag(2));
        CHECK(p.sent() == words{"watch children /p"});
        p.answer_to(0, names({"x", kazoo_ours}));
        CHECK(p.machine.now() == phase::granted);
    }
    SECTION("another one")
    {
        p.answer_to(1, {.what = answer::ok, .text = "3"});
        p.answer_to(2, names({kazoo_ours}));
        CHECK(p.machine.now() == phase::failed);
        CHECK(p.machine.why() == holdfast::zookeeper::errc::other_number);
        CHECK(p.machine.detail() == "its number of permits is 3, and this client says 2");
        CHECK(p.machine.what_is_left().node == "/p/" + kazoo_ours);
    }
    SECTION("none")
    {
        auto const* const text = GENERATE("", "2 jobs", "two", "-1");
        p.answer_to(1, {.what = answer::ok, .text = text});
        p.answer_to(2, names({kazoo_ours}));
        CHECK(p.machine.now() == phase::granted);
    }
    SECTION("an answer that is lost proves nothing")
    {
        p.answer_to(1, only(answer::lost));
        p.answer_to(2, names({kazoo_ours}));
        CHECK(p.machine.stalled());
        p.machine.connected(1);
        CHECK(p.sent() == words{"data /p", "watch children /p"});
        p.answer_to(0, {.what = answer::ok, .text = "2"});
        p.answer_to(1, names({kazoo_ours}));
        CHECK(p.machine.now() == phase::granted);
    }
    SECTION("one that may not be read")
    {
        p.answer_to(1, {answer::refused, holdfast::zookeeper::errc::may_not_read});
        CHECK(p.machine.why() == holdfast::zookeeper::errc::may_not_read);
    }
}

TEST_CASE("the node above kazoo's permits says the number, and stays")
{
    kazoo_permit p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::no_node));
    CHECK(p.sent() == words{"persistent /p", "create /p/" + kazoo_prefix, "data /p", "watch children /p"});
}

TEST_CASE("one that asks once watches nothing")
{
    permit p{true};
    CHECK(p.sent() == words{"create /p/leases/" + prefix(1), "children /p/leases"});
}

TEST_CASE("nodes above are made along with the permit, and forgotten when it is there")
{
    permit p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::no_node));
    CHECK(p.sent() == words{"container /p/leases", "create /p/leases/" + prefix(1), "watch children /p/leases"});
    CHECK(p.machine.what_is_left().containers == words{"/p/leases"});
    p.answer_to(1, created("/p/leases/" + ours, 10));
    p.answer_to(2, names({ours}));
    CHECK(p.machine.now() == phase::granted);
    CHECK(p.machine.what_is_left().containers.empty());
}

TEST_CASE("a create whose answer is lost is looked for, and not repeated blindly")
{
    permit p;
    static_cast<void>(p.sent());
    p.answer_to(0, only(answer::lost));
    CHECK(p.machine.stalled());
    CHECK(p.machine.left_something());
    p.machine.connected(1);
    CHECK(p.sent() == words{"confirm", "children /p/leases"});
    SECTION("it is there")
    {
        p.answer_to(1, names({"a-lease-0000000001", ours}));
        CHECK(p.sent() == words{"data /p/leases/" + ours});
        p.answer_to(0, stat(10, 1, "me"));
        CHECK(p.sent() == words{"watch children /p/leases"});
        p.answer_to(0, names({"a-lease-0000000001", ours}));
        CHECK(p.machine.now() == phase::granted);
        CHECK(p.machine.czxid() == 10);
    }
    SECTION("it is not there")
    {
        p.answer_to(1, names({"a-lease-0000000001"}));
        CHECK(p.sent() == words{"create /p/leases/" + prefix(1), "watch children /p/leases"});
    }
    SECTION("what comes after a barrier that was not done proves nothing")
    {
        p.answer_to(0, only(answer::lost));
        p.answer_to(1, names({}));
        CHECK(p.sent().empty());
        p.machine.connected(1);
        CHECK(p.sent() == words{"confirm", "children /p/leases"});
    }
}

TEST_CASE("a permit whose node is gone is asked for anew")
{
    permit p;
    static_cast<void>(p.sent());
    p.answer_to(0, created("/p/leases/" + ours, 10));
    p.answer_to(1, names({"a-lease-0000000001"}));
    CHECK(p.sent() == words{"create /p/leases/" + prefix(2), "watch children /p/leases"});
}

TEST_CASE("after a lost list it lists again; after the end of the session it fails")
{
    permit p;
    static_cast<void>(p.sent());
    p.answer_to(0, created("/p/leases/" + ours, 10));
    p.answer_to(1, only(answer::lost));
    p.machine.connected(1);
    CHECK(p.sent() == words{"watch children /p/leases"});
    p.answer_to(0, names({"a", "b", ours}));
    CHECK(p.machine.waits());
    p.machine.expired();
    p.machine.connected(2);
    CHECK(p.machine.now() == phase::failed);
    CHECK(p.machine.why() == holdfast::zookeeper::errc::session_expired);
    CHECK_FALSE(p.machine.left_something());
}

TEST_CASE("a list that may not be read is refused before a node is made")
{
    permit p{false, true};
    CHECK(p.sent() == words{"children /p/leases"});
    p.answer_to(0, {.what = answer::refused, .code = holdfast::zookeeper::errc::may_not_read});
    CHECK(p.machine.now() == phase::failed);
    CHECK_FALSE(p.machine.left_something());
}
