// SPDX-License-Identifier: MIT
#include "machines.hpp"

#include <vector>

using namespace holdfast::test;
using holdfast::quorum::max_nodes;
using holdfast::quorum::node_set;
using holdfast::quorum::majority_of;

TEST_CASE("a set of nodes is empty until one is added, and again when it is removed")
{
    node_set s;
    CHECK(s.empty());
    CHECK(s.size() == 0);
    s.add(3);
    s.add(3);
    CHECK_FALSE(s.empty());
    CHECK(s.size() == 1);
    CHECK(s.has(3));
    CHECK_FALSE(s.has(2));
    s.remove(2);
    CHECK(s == node_set::of(3));
    s.remove(3);
    CHECK(s == node_set{});
}

TEST_CASE("all nodes are those from 0 on, up to the most that there can be")
{
    for (unsigned count = 0; count <= max_nodes; ++count) {
        auto const s = node_set::all(count);
        CHECK(s.size() == count);
        for (unsigned node = 0; node < max_nodes; ++node) CHECK(s.has(node) == (node < count));
    }
}

TEST_CASE("sets are united, intersected and subtracted")
{
    auto const a = nodes(0, 1, 5);
    auto const b = nodes(1, 30);
    CHECK((a | b) == nodes(0, 1, 5, 30));
    CHECK((a & b) == nodes(1));
    CHECK((a - b) == nodes(0, 5));
    CHECK((b - a) == nodes(30));
    CHECK((a - a).empty());
}

TEST_CASE("the nodes of a set are visited from the least on")
{
    std::vector<unsigned> seen;
    nodes(30, 2, 7).for_each([&](unsigned node) { seen.push_back(node); });
    CHECK(seen == std::vector<unsigned>{2, 7, 30});
    CHECK(nodes(30, 2, 7).first() == 2);
    CHECK(nodes(30).first() == 30);
}

TEST_CASE("two majorities share a node, and one that is smaller need not")
{
    for (unsigned n = 1; n <= max_nodes; ++n) {
        CHECK(2 * majority_of(n) > n);
        CHECK(2 * (majority_of(n) - 1) <= n);
    }
}
