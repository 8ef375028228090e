// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/linked_line.hpp>

#include <vector>

namespace {

struct guest {
    guest* previous = nullptr;
    guest* next = nullptr;
};

using line_of_guests = holdfast::detail::linked_line<guest>;

/// Returns: all in their order.
std::vector<guest*> all_of(line_of_guests const& line)
{
    std::vector<guest*> all;
    for (auto* one = line.first(); one; one = one->next) all.push_back(one);
    CHECK(all.size() == line.size());
    return all;
}

}  // namespace

TEST_CASE("the first in a line is who came first of those that have not left, from wherever they leave")
{
    guest a;
    guest b;
    guest c;
    line_of_guests line;
    CHECK(all_of(line).empty());
    for (auto* one : {&a, &b, &c}) line.add(*one);
    CHECK(all_of(line) == std::vector{&a, &b, &c});
    line.remove(b);
    CHECK(all_of(line) == std::vector{&a, &c});
    line.add(b);
    line.remove(a);
    CHECK(all_of(line) == std::vector{&c, &b});
    line.remove(b);
    line.remove(c);
    CHECK(all_of(line).empty());
    line.add(a);
    CHECK(all_of(line) == std::vector{&a});
}

TEST_CASE("each in a line may leave, and others may come, while all are called in their order")
{
    guest a;
    guest b;
    guest c;
    line_of_guests line;
    line.add(a);
    line.add(b);
    std::vector<guest*> called;
    line.for_each([&](guest& one) {
        called.push_back(&one);
        line.remove(one);
        if (&one == &a) line.add(c);
    });
    CHECK(called == std::vector{&a, &b, &c});
    CHECK(all_of(line).empty());
}
