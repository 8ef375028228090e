// SPDX-License-Identifier: MIT
//
// When a channel counts as subscribed to, when it no longer does, and who is told. No connection, no time.
#include "support/catch.hpp"

#include <holdfast/core/error.hpp>
#include <holdfast/redis/subscriptions.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::redis::errc;

namespace {

using lines = std::vector<std::string>;
constexpr boot_clock::time_point t0{1h};
auto const misconfigured = make_error_code(holdfast::errc::misconfigured);
auto const unavailable = make_error_code(holdfast::errc::unavailable);

/// Notes what is asked for. What happens to the connection is what the test says.
class connected_channels final : public holdfast::redis::subscriptions {
public:
    connected_channels() : subscriptions{0, 100ms} {}

    using subscriptions::came_up, subscriptions::confirmed, subscriptions::refused, subscriptions::reported,
        subscriptions::up, subscriptions::went_down;

    lines asked{};
    int connects = 0;
    bool unread = false;
    std::uint64_t bytes = 0;

private:
    std::error_code connect(boot_clock::time_point) override { return ++connects, std::error_code{}; }
    void disconnect(std::error_code why, boot_clock::time_point now, std::string) override { went_down(why, now); }
    void write(verb what, std::string const& channel) override
    {
        asked.push_back((what == verb::subscribe ? "+" : "-") + channel);
    }
    [[nodiscard]] bool readable() const noexcept override { return unread; }
    [[nodiscard]] std::uint64_t received() const noexcept override { return bytes; }
};

class watcher final : public holdfast::redis::listener {
public:
    void on_answer(unsigned, holdfast::redis::answer const&, boot_clock::time_point) override {}
    void on_watching(unsigned, boot_clock::time_point) override { told.emplace_back("watching"); }
    void on_watch_failed(unsigned, std::error_code why, boot_clock::time_point) override
    {
        told.push_back(why.message());
    }
    void on_released(unsigned, boot_clock::time_point) override { told.emplace_back("released"); }

    lines take() { return std::exchange(told, {}); }

private:
    lines told;
};

struct fixture {
    connected_channels node{};
    watcher one{};
    watcher other{};

    void watch(watcher& w, std::string const& channel = "a") { CHECK_FALSE(node.watch(channel, &w, t0)); }
    void unwatch(watcher& w, std::string const& channel = "a") { node.unwatch(channel, &w, t0); }
    bool confirm(std::string const& channel = "a")
    {
        return node.confirmed(connected_channels::verb::subscribe, channel, t0);
    }
    bool confirm_end(std::string const& channel = "a")
    {
        return node.confirmed(connected_channels::verb::unsubscribe, channel, t0);
    }
    void come_up()
    {
        watch(one);
        node.came_up(t0);
        CHECK(confirm());
        CHECK(one.take() == lines{"watching"});
        CHECK(std::exchange(node.asked, {}) == lines{"+a"});
    }
};

std::string text(std::error_code const& e) { return e.message(); }

}  // namespace

TEST_CASE("a channel is subscribed to when its last question is confirmed, and then all its watchers are told")
{
    fixture f;
    f.watch(f.one);
    CHECK(f.node.connects == 1);
    CHECK(f.node.asked.empty());
    f.node.came_up(t0);
    f.watch(f.other);
    CHECK(f.node.asked == lines{"+a", "+a"});
    CHECK_FALSE(f.confirm());
    CHECK(f.one.take().empty());
    CHECK(f.confirm());
    CHECK((f.one.take() == lines{"watching"} && f.other.take() == lines{"watching"}));
    CHECK_FALSE(f.node.waits());
    f.node.reported("a", "", t0);
    f.node.reported("b", "", t0);
    CHECK((f.one.take() == lines{"released"} && f.other.take() == lines{"released"}));
}

TEST_CASE("a channel without a watcher is given up; one who comes meanwhile is told by a confirmation of its own")
{
    fixture f;
    f.watch(f.one);
    f.node.came_up(t0);
    f.unwatch(f.one);
    f.watch(f.other);
    CHECK(f.node.asked == lines{"+a", "-a", "+a"});
    CHECK_FALSE(f.confirm());
    CHECK_FALSE(f.confirm_end());
    CHECK(f.other.take().empty());
    CHECK(f.confirm());
    CHECK(f.other.take() == lines{"watching"});
    f.unwatch(f.other);
    CHECK_FALSE(f.confirm_end());
    f.node.reported("a", "", t0);
    CHECK((f.one.take().empty() && f.other.take().empty()));
}

TEST_CASE("when the connection is over all watchers are told, and every channel is subscribed to over the next one")
{
    fixture f;
    f.come_up();
    f.watch(f.other, "b");
    f.node.went_down(errc::connection_lost, t0);
    auto const lost = text(errc::connection_lost);
    CHECK((f.one.take() == lines{lost} && f.other.take() == lines{lost}));
    CHECK((!f.node.up() && !f.node.waits()));
    f.node.keep_up(t0);
    CHECK(f.node.connects == 2);
    f.node.asked.clear();
    f.node.came_up(t0);
    CHECK(f.node.asked == lines{"+a", "+b"});
    CHECK((f.confirm() && f.confirm("b")));
    CHECK((f.one.take() == lines{"watching"} && f.other.take() == lines{"watching"}));
    f.node.keep_up(t0);
    CHECK(f.node.connects == 2);
}

TEST_CASE("a connection that no channel wants is not made again")
{
    fixture f;
    f.come_up();
    f.unwatch(f.one);
    f.node.went_down(errc::connection_lost, t0);
    f.node.keep_up(t0);
    CHECK(f.node.connects == 1);
    CHECK(f.one.take().empty());
}

TEST_CASE("a node that never reports keeps its connection; one that cannot now is asked over another")
{
    fixture f;
    f.watch(f.one);
    f.node.came_up(t0);
    SECTION("no right")
    {
        CHECK(f.node.refused(misconfigured, t0));
        CHECK(f.one.take() == lines{text(misconfigured)});
        CHECK(f.node.up());
    }
    SECTION("not now")
    {
        CHECK(f.node.refused(unavailable, t0));
        auto const why = text(unavailable);
        CHECK(f.one.take() == lines{why, why});
        CHECK_FALSE(f.node.up());
    }
    SECTION("no watcher left")
    {
        f.unwatch(f.one);
        CHECK_FALSE(f.node.refused(unavailable, t0));
        CHECK(f.one.take().empty());
        CHECK(f.node.up());
    }
}

TEST_CASE("what was not asked for is no confirmation, and ends the connection")
{
    fixture f;
    f.watch(f.one);
    f.node.came_up(t0);
    SECTION("another channel") { CHECK_FALSE(f.confirm("b")); }
    SECTION("the end of this one") { CHECK_FALSE(f.confirm_end()); }
    SECTION("once more")
    {
        CHECK(f.confirm());
        f.one.take();
        CHECK_FALSE(f.confirm());
    }
    SECTION("a refusal of nothing")
    {
        CHECK(f.confirm());
        f.one.take();
        CHECK_FALSE(f.node.refused(misconfigured, t0));
    }
    CHECK(f.one.take() == lines{text(errc::protocol_error)});
    CHECK_FALSE(f.node.up());
}

TEST_CASE("a connection is given up when a question is overdue, unless what came first was not read in time")
{
    fixture f;
    f.come_up();
    f.node.discard_unanswered(t0 + 1h);
    CHECK(f.node.up());
    f.node.bytes = 1000;
    f.watch(f.other);
    f.node.discard_unanswered(t0 + 100ms);
    CHECK(f.node.up());
    f.node.unread = GENERATE(true, false);
    f.node.bytes = GENERATE(1000U, 1'049'576U, 1'049'577U);
    bool const may_come = f.node.unread && f.node.bytes <= 1'049'576;
    f.node.discard_unanswered(t0 + 101ms);
    CHECK(f.node.up() == may_come);
    CHECK(f.other.take().empty() == may_come);
}

TEST_CASE("more reports in a second than there can be end the connection, not counting the names of locks")
{
    fixture f;
    f.come_up();
    f.node.bytes = 4'194'305;
    f.node.reported("a", "", t0 + 500ms);
    CHECK(f.node.up());
    CHECK(f.one.take() == lines{"released"});
    f.node.bytes += 2;
    f.node.reported("unknown", "", t0 + 999ms);
    CHECK_FALSE(f.node.up());
    CHECK(f.one.take() == lines{text(errc::protocol_error)});
}
