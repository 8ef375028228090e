// SPDX-License-Identifier: MIT
#include "../support/catch.hpp"
#include "../support/protocol.hpp"

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
        splitter in{resp};
        std::vector<std::string> cut;
        for (std::size_t at = 0; at < stream.size(); at += size) {
            in.feed(std::string_view{stream}.substr(at, size));
            while (auto value = in.next()) cut.push_back(*value);
        }
        REQUIRE(cut == values);
        REQUIRE(in.rest().empty());
    }
}

TEST_CASE("an incomplete value is kept back, and is what rests")
{
    splitter in{resp};
    in.feed("+OK\r\n*2\r\n$1\r\na\r\n$5\r\nab");
    CHECK(in.next() == "+OK\r\n");
    CHECK_FALSE(in.next());
    CHECK(in.rest() == "*2\r\n$1\r\na\r\n$5\r\nab");
    CHECK(in.rest().empty());
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

TEST_CASE("packets of ZooKeeper have their length in front, and tell their type")
{
    // A create of number 7, and a first packet, whose bytes at the place of the type are of something else.
    std::string const create{"\0\0\0\x09\0\0\0\x07\0\0\0\x0fx", 13};
    std::string const first{"\0\0\0\x09\0\0\0\0\0\0\0\x0fx", 13};
    splitter in{zookeeper_packets};
    in.feed(create + first.substr(0, 12));
    CHECK(in.next() == create);
    CHECK_FALSE(in.next());
    in.feed("x");
    CHECK(in.next() == first);
    CHECK(of(zookeeper_request::create)(create));
    CHECK_FALSE(of({zookeeper_request::erase, zookeeper_request::get_data})(create));
    CHECK_FALSE(of(zookeeper_request::create)(first));
}
