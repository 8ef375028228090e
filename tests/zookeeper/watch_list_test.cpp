// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/zookeeper/session_operation.hpp>
#include <holdfast/zookeeper/watch_list.hpp>

#include <string>
#include <vector>

using holdfast::zookeeper::session_operation;
using holdfast::zookeeper::watch_list;
using paths = std::vector<std::string>;

namespace {

struct nobody final : session_operation {};

}  // namespace

TEST_CASE("a watch that nobody waits for is to be removed, unless somebody watches the same path")
{
    nobody one;
    nobody two;
    watch_list list;
    CHECK(list.add(one, 0, "/orders"));
    CHECK(list.add(two, 0, "/orders"));
    CHECK(list.remove(one) == "/orders");
    CHECK(list.wanted("/orders"));
    CHECK(list.unwanted().empty());
    CHECK(list.remove(two) == "/orders");
    CHECK_FALSE(list.wanted("/orders"));
    CHECK(list.unwanted() == paths{"/orders"});
    CHECK(list.take("/orders").empty());
    CHECK(list.unwanted().empty());
}

TEST_CASE("a watch that could not be removed is not removed any more when somebody watches its path")
{
    nobody one;
    watch_list list;
    CHECK(list.add(one, 0, "/orders"));
    CHECK(list.remove(one) == "/orders");
    CHECK(list.unwanted() == paths{"/orders"});
    CHECK(list.add(one, 0, "/orders"));
    CHECK(list.unwanted().empty());
    CHECK(list.remove(one) == "/orders");
    CHECK(list.unwanted() == paths{"/orders"});
}

TEST_CASE("a watch that goes off is told to all that wait for the node, once")
{
    nobody one;
    nobody two;
    watch_list list;
    CHECK(list.add(one, 1, "/orders"));
    CHECK(list.add(two, 2, "/orders"));
    nobody three;
    CHECK(list.add(three, 3, "/invoices"));
    auto const told = list.take("/orders");
    REQUIRE(told.size() == 2);
    CHECK(told[0].who == &one);
    CHECK(told[0].tag == 1);
    CHECK(told[1].who == &two);
    CHECK(told[1].tag == 2);
    CHECK(list.take("/orders").empty());
    CHECK(list.wanted("/invoices"));
}

TEST_CASE("no more is watched than a server takes when it is all named at once")
{
    std::vector<nobody> all(watch_list::most_bytes / 1'024);
    nobody one;
    watch_list list;
    auto const path = [](std::size_t i) {
        return std::string(1'014, 'x') + std::to_string(100'000 + i);
    };  // 1 KiB as it is sent
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(list.add(all[i], 0, path(i)));
    CHECK_FALSE(list.add(one, 0, "/orders"));
    CHECK(list.add(one, 0, path(0)));  // which is watched anyway
    CHECK(list.take(path(0)).size() == 2);
    CHECK(list.add(one, 0, "/orders"));
    list.clear();
    CHECK(list.add(one, 0, path(0)));
}
