// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/zookeeper/watch_list.hpp>

#include <set>
#include <string>

using holdfast::zookeeper::receiver;
using holdfast::zookeeper::reply;
using holdfast::zookeeper::watch_list;

namespace {

struct nobody final : receiver {
    void on_answer(unsigned, reply const&) override {}
    void on_notice(unsigned) override {}
    void on_connected(std::int64_t) override {}
    void on_expired() noexcept override {}
    void on_failure(std::error_code) noexcept override {}
};

}  // namespace

TEST_CASE("a watch that nobody waits for is to be removed, unless somebody watches the same path")
{
    nobody one;
    watch_list list;
    auto const first = list.add(one, 0, "/orders");
    auto const second = list.add(one, 0, "/orders");
    list.abandon(first);
    CHECK(list.take_abandoned().empty());
    list.abandon(second);
    CHECK(list.take_abandoned() == std::set<std::string>{"/orders"});
    CHECK(list.take_abandoned().empty());
}

TEST_CASE("a watch that could not be removed is not removed any more when somebody watches its path")
{
    nobody one;
    watch_list list;
    list.abandon(std::string{"/orders"});
    auto const watching = list.add(one, 0, "/orders");
    CHECK(list.take_abandoned().empty());
    list.abandon(watching);
    CHECK(list.take_abandoned() == std::set<std::string>{"/orders"});
}

TEST_CASE("no more is watched than a server takes when it is all named at once")
{
    nobody one;
    watch_list list;
    std::vector<std::uint64_t> watches;
    std::string const path(1'020, 'x');  // 1 KiB as it is sent
    for (std::size_t i = 0; i < watch_list::most_bytes / 1'024; ++i) watches.push_back(list.add(one, 0, path));
    try {
        static_cast<void>(list.add(one, 0, "/orders"));
        FAIL("it should be refused");
    } catch (holdfast::error const& e) {
        CHECK(e.code() == holdfast::zookeeper::errc::too_many_watches);
        CHECK(e.code() == holdfast::errc::unavailable);
    }
    list.abandon(watches.front());
    CHECK_NOTHROW(list.add(one, 0, "/orders"));
    list.clear();
    CHECK_NOTHROW(list.add(one, 0, path));
}
