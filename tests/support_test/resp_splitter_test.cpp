// SPDX-License-Identifier: MIT
#include "../support/catch.hpp"
#include "../support/resp_splitter.hpp"

#include <string>
#include <vector>

using namespace holdfast::test;

TEST_CASE("a stream is cut into the same values wherever its bytes are divided")
{
    std::vector<std::string> const values{
        "+OK\r\n",
        "-ERR no\r\n",
        ":-42\r\n",
        "$-1\r\n",
        "$0\r\n\r\n",
        "$8\r\na\r\n$3\r\nb\r\n",
        "*-1\r\n",
        "*0\r\n",
        "*2\r\n*2\r\n:1\r\n$2\r\nhi\r\n*1\r\n*0\r\n",
        "PING inline\r\n",
        std::string{"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\n\0\r\n\r\n", 29},
    };
    std::string stream;
    for (auto const& value : values) stream += value;

    for (std::size_t size = 1; size <= stream.size(); ++size) {
        resp_splitter splitter;
        std::vector<std::string> cut;
        for (std::size_t at = 0; at < stream.size(); at += size) {
            splitter.feed(std::string_view{stream}.substr(at, size));
            while (auto value = splitter.next()) cut.push_back(*value);
        }
        REQUIRE(cut == values);
        REQUIRE(splitter.rest().empty());
    }
}

TEST_CASE("an incomplete value is kept back, and is what rests")
{
    resp_splitter splitter;
    splitter.feed("+OK\r\n*2\r\n$1\r\na\r\n$5\r\nab");
    CHECK(splitter.next() == "+OK\r\n");
    CHECK_FALSE(splitter.next());
    CHECK(splitter.rest() == "*2\r\n$1\r\na\r\n$5\r\nab");
    CHECK(splitter.rest().empty());
}

TEST_CASE("a request tells its command and the number of its words")
{
    CHECK(first_element("*2\r\n$9\r\nSubscribe\r\n$1\r\nc\r\n") == "subscribe");
    CHECK(element_count("*2\r\n$9\r\nSubscribe\r\n$1\r\nc\r\n") == 2);
    CHECK(first_element(":1\r\n").empty());
    CHECK(first_element("*1\r\n:1\r\n").empty());
    CHECK(element_count("*-1\r\n") == 0);
    CHECK(element_count("$1\r\na\r\n") == 0);
}
