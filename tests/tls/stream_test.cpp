// SPDX-License-Identifier: MIT
#include "server_side.hpp"
#include "support/catch.hpp"
#include "support/loopback.hpp"
#include "support/temporary_folder.hpp"

#include <holdfast/io/stream.hpp>
#include <holdfast/tls.hpp>

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

using holdfast::io::stream;
using holdfast::test::authority;
using holdfast::test::file_descriptor;
using holdfast::test::server_side;
using holdfast::test::temporary_folder;

TEST_CASE("records without data are read no further at a time than a stream is told to")
{
    authority signer;
    server_side server{{.shown = signer.issue()}};
    temporary_folder const folder;
    auto const path = (folder.path() / "server").string();
    auto const address = holdfast::io::unix_address(path).value();
    file_descriptor const listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    REQUIRE(::bind(listener.get(), address.get(), address.size) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    stream s;
    REQUIRE(s.open(
        {.host = "localhost",
         .port = {},
         .path = path,
         .tls = std::make_shared<holdfast::tls::layer const>(holdfast::tls::options{.ca_file = signer.file()})}));
    file_descriptor const theirs{::accept(listener.get(), nullptr, nullptr)};
    auto const say = [&] {
        auto const bytes = server.output();
        CHECK(::send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
    };
    for (int i = 0; i < 10 && s.now() == stream::state::securing; ++i) {
        std::array<char, 16'384> heard{};
        auto const n = ::recv(theirs.get(), heard.data(), heard.size(), MSG_DONTWAIT);
        if (n > 0) server.receive({heard.data(), static_cast<std::size_t>(n)});
        ::SSL_do_handshake(server.ssl());
        ::ERR_clear_error();
        say();
        REQUIRE(s.go_on());
    }
    REQUIRE(s.now() == stream::state::open);
    std::array<char, 16'384> heard{};
    auto const n = ::recv(theirs.get(), heard.data(), heard.size(), MSG_DONTWAIT);
    REQUIRE(n > 0);
    server.receive({heard.data(), static_cast<std::size_t>(n)});
    ::SSL_do_handshake(server.ssl());
    std::string records;  // tickets, of which a client is told whenever the server likes
    while (records.size() < 50'000) {
        REQUIRE(::SSL_new_session_ticket(server.ssl()) == 1);
        REQUIRE(::SSL_do_handshake(server.ssl()) == 1);
        records += server.output();
    }
    REQUIRE(::send(theirs.get(), records.data(), records.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(records.size()));
    int before = 0;
    REQUIRE(::ioctl(s.descriptor(), FIONREAD, &before) == 0);
    std::array<char, 100> buffer{};
    std::size_t left = 16'384;
    CHECK(s.read(buffer, left) == 0U);
    CHECK(left == 0);
    int after = 0;
    REQUIRE(::ioctl(s.descriptor(), FIONREAD, &after) == 0);
    CHECK(before - after == 16'384);
}
