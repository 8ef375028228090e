// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/refusal.hpp"

#include <holdfast/core/name.hpp>

#include <algorithm>
#include <string>

using holdfast::check_name;
using holdfast::quoted;
using holdfast::test::contains;
using holdfast::test::refusal;

TEST_CASE("a name may have any bytes, up to 65536 of them")
{
    CHECK_NOTHROW(check_name("a"));
    CHECK_NOTHROW(check_name(std::string(65'536, 'x')));
    for (int byte = 0; byte < 256; ++byte) CHECK_NOTHROW(check_name(std::string(1, static_cast<char>(byte))));
}

TEST_CASE("a name that is empty or too long is refused")
{
    CHECK_THAT(refusal([] { check_name(""); }), contains("empty"));
    CHECK_THAT(refusal([] { check_name(std::string(65'537, 'x')); }), contains("65537") && contains("65536"));
}

TEST_CASE("a name is quoted in messages as it is where it is printable")
{
    CHECK(holdfast::quoted("orders/42") == "\"orders/42\"");
    CHECK(holdfast::quoted("") == "\"\"");
    CHECK(holdfast::quoted(" ~") == "\" ~\"");
}

TEST_CASE("what could be taken for something else in a message is escaped")
{
    CHECK(holdfast::quoted("a\"b\\c") == R"("a\"b\\c")");
    CHECK(holdfast::quoted("a\r\nb") == R"("a\x0d\x0ab")");
    CHECK(holdfast::quoted(std::string("\0\x7f\xff", 3)) == R"("\x00\x7f\xff")");
    CHECK(holdfast::quoted("\x1b[31m") == R"("\x1b[31m")");
    for (int byte = 0; byte < 256; ++byte) {
        auto const text = holdfast::quoted(std::string(1, static_cast<char>(byte)));
        CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }));
    }
}

TEST_CASE("a long name is shortened in messages, and it is seen that it is")
{
    CHECK(holdfast::quoted(std::string(128, 'x')) == '"' + std::string(128, 'x') + '"');
    CHECK(holdfast::quoted(std::string(129, 'x')) == '"' + std::string(128, 'x') + "…\"");
}
