// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/token.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

using holdfast::owner_token;

TEST_CASE("a token has 32 hexadecimal digits")
{
    auto const t = owner_token::fresh();
    CHECK(t.view().size() == 32);
    CHECK(t.view().find_first_not_of("0123456789abcdef") == std::string_view::npos);
}

TEST_CASE("a token of given bits has them as digits, the greatest first")
{
    CHECK(owner_token::from_bits(0x0123456789abcdefU, 0xfedcba9876543210U).view() ==
          "0123456789abcdeffedcba9876543210");
    CHECK(owner_token::from_bits(0, 1).view() == "00000000000000000000000000000001");
    CHECK(owner_token::from_bits(1, 0).view() == "00000000000000010000000000000000");
}

TEST_CASE("tokens are equal where their bits are, and one that owns nothing equals none that was drawn")
{
    CHECK(owner_token::from_bits(1, 2) == owner_token::from_bits(1, 2));
    CHECK(owner_token::from_bits(1, 2) != owner_token::from_bits(2, 1));
    CHECK(owner_token{} == owner_token{});
    CHECK(owner_token{} != owner_token::from_bits(0, 0));
    CHECK(owner_token{} != owner_token::fresh());
}

TEST_CASE("no token is drawn twice, and every digit varies", "[lesson-7]")
{
    std::set<std::string> seen;
    std::array<std::set<char>, 32> digits;
    for (int i = 0; i < 2000; ++i) {
        auto const t = owner_token::fresh();
        CHECK(seen.emplace(t.view()).second);
        for (std::size_t d = 0; d < 32; ++d) digits[d].insert(t.view()[d]);
    }
    for (auto const& d : digits) CHECK(d.size() == 16);
}

TEST_CASE("a forked child draws other tokens than its parent", "[lesson-7]")
{
    (void)owner_token::fresh();
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    auto const child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        auto const t = owner_token::fresh();
        bool const sent = ::write(ends[1], t.view().data(), t.view().size()) == static_cast<ssize_t>(t.view().size());
        ::_exit(sent ? 0 : 1);
    }
    auto const here = owner_token::fresh();
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    std::array<char, 32> there{};
    CHECK(::read(ends[0], there.data(), there.size()) == static_cast<ssize_t>(there.size()));
    CHECK(std::string_view{there.data(), there.size()} != here.view());
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_CASE("random bytes fill what they are asked to fill, and no more")
{
    std::array<unsigned char, 258> bytes{};
    owner_token::fill_random(bytes.data() + 1, 256);
    CHECK(bytes.front() == 0);
    CHECK(bytes.back() == 0);
    CHECK(std::count(bytes.begin() + 1, bytes.end() - 1, static_cast<unsigned char>(0)) < 32);
}
