// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/insertion_sort.hpp>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

using holdfast::detail::insertion_sort;

TEST_CASE("every order of a few elements is sorted, both ways")
{
    std::vector<int> order{1, 2, 3, 4, 5};
    do {
        auto up = order;
        insertion_sort(up.begin(), up.end());
        CHECK(up == std::vector{1, 2, 3, 4, 5});
        auto down = order;
        insertion_sort(down.begin(), down.end(), std::greater<>{});
        CHECK(down == std::vector{5, 4, 3, 2, 1});
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("of equal elements the first stays the first when a few are sorted")
{
    std::vector<std::pair<int, char>> some{{2, 'a'}, {1, 'a'}, {2, 'b'}, {1, 'b'}};
    insertion_sort(some.begin(), some.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    CHECK(some == std::vector<std::pair<int, char>>{{1, 'a'}, {1, 'b'}, {2, 'a'}, {2, 'b'}});
}

TEST_CASE("none are sorted, and one")
{
    std::vector<int> none;
    insertion_sort(none.begin(), none.end());
    CHECK(none.empty());
    std::vector<int> one{1};
    insertion_sort(one.begin(), one.end());
    CHECK(one == std::vector{1});
}
