// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/loopback.hpp"
#include "support/temporary_folder.hpp"

#include <holdfast/io/stream.hpp>

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <string>

using holdfast::io::stream;
using holdfast::test::bind_free_port;
using holdfast::test::file_descriptor;
using holdfast::test::start_connecting;
using holdfast::test::temporary_folder;

TEST_CASE("a stream takes no more from its socket than it is told to, however much is there")
{
    temporary_folder const folder;
    auto const path = (folder.path() / "server").string();
    auto const address = holdfast::io::unix_address(path).value();
    file_descriptor const listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    REQUIRE(::bind(listener.get(), address.get(), address.size) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    stream s;
    REQUIRE(s.open({.host = {}, .port = {}, .path = path, .tls = nullptr}));
    file_descriptor const theirs{::accept(listener.get(), nullptr, nullptr)};
    REQUIRE(s.now() == stream::state::open);
    std::string const sent(50'000, 'x');
    REQUIRE(::send(theirs.get(), sent.data(), sent.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(sent.size()));
    std::size_t got = 0;
    int turns = 0;
    for (; got < sent.size() && turns < 100; ++turns) {
        std::array<char, 7'000> buffer{};
        std::size_t left = 10'000;
        std::size_t in_turn = 0;
        while (auto const n = s.read(buffer, left).value()) in_turn += n;
        CHECK(in_turn == 10'000);
        CHECK(left == 0);
        got += in_turn;
    }
    CHECK(turns == 5);
}

TEST_CASE("an event that was of another descriptor of the same number does not end the wait for a connection")
{
    auto const bound = bind_free_port();
    REQUIRE(::listen(bound.fd.get(), 0) == 0);
    std::array const crowd{start_connecting(bound.port), start_connecting(bound.port)};
    stream one;
    REQUIRE(one.open({.host = "127.0.0.1", .port = std::to_string(bound.port), .path = {}, .tls = nullptr}));
    REQUIRE(one.now() == stream::state::connecting);
    CHECK(one.go_on());
    CHECK(one.now() == stream::state::connecting);
}
