// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/refusal.hpp"

#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/session_options.hpp>

#include <chrono>
#include <string>
#include <string_view>

using holdfast::owner_token;
using holdfast::test::contains;
using holdfast::test::refusal;
using holdfast::zookeeper::lock_path;
using holdfast::zookeeper::naming;
using holdfast::zookeeper::node_prefix;
using holdfast::zookeeper::parse_servers;
using holdfast::zookeeper::sequence_of;

namespace {

std::string refused(std::string const& name)
{
    return refusal([&] { static_cast<void>(lock_path(name)); });
}

}  // namespace

TEST_CASE("a name is a path, with or without its first slash")
{
    CHECK(lock_path("/locks/orders") == "/locks/orders");
    CHECK(lock_path("orders/42") == "/orders/42");
    CHECK(lock_path("/a b/{}/.../..x/\xC3\xA4\xE2\x82\xAC") == "/a b/{}/.../..x/\xC3\xA4\xE2\x82\xAC");
    CHECK(lock_path("orders", "/app") == "/app/orders");
    CHECK(lock_path("/zookeepers") == "/zookeepers");
    CHECK(lock_path("/locks/zookeeper") == "/locks/zookeeper");
    CHECK(lock_path("/zookeeper", "/app") == "/app/zookeeper");
}

TEST_CASE("what cannot be a path is refused, and said why")
{
    CHECK_THAT(refused("/"), contains("empty"));
    CHECK(refusal([] { static_cast<void>(lock_path("/a/", "/root")); }, &holdfast::error::lock_name) == "/a/");
    CHECK_THAT(refused("/a/"), contains("ends with a slash"));
    CHECK_THAT(refused("a/"), contains("ends with a slash"));
    CHECK_THAT(refused("//a"), contains("empty part"));
    CHECK_THAT(refused("/a//b"), contains("empty part"));
    CHECK_THAT(refused("/a/./b"), contains("\"..\""));
    CHECK_THAT(refused("/.."), contains("\"..\""));
    CHECK_THAT(refused("/a/.."), contains("\"..\""));
    CHECK_THAT(refused("/zookeeper"), contains("/zookeeper"));
    CHECK_THAT(refused("/orders/x-lock-0000000042"), contains("the lock above it"));
    CHECK_THAT(refused("/orders/x-__READ__0000000042"), contains("the lock above it"));
    CHECK_THAT(refused("/orders/x-__WRIT__0000000042"), contains("the lock above it"));
    CHECK_THAT(refused("/orders/0123__lock__0000000042/more"), contains("the lock above it"));
    CHECK(refused("/x-lock-0000000042") == "(not refused)");
    CHECK_THAT(refusal([] { static_cast<void>(lock_path("/x-lock-0000000042", "/orders")); }),
               contains("the lock above it"));
    CHECK(refused("/orders/x-lock-42") == "(not refused)");
    CHECK_THAT(refused("/zookeeper/quota"), contains("/zookeeper"));
    for (auto const* const bad :
         {"/a\n", "/\x1f", "/\x7f", "/\xC2\x80", "/\xC0\xAF", "/\xE0\x80\x80", "/\xED\xA0\x80", "/\xEE\x80\x80",
          "/\xEF\xBF\xBF", "/\xF0\x9F\x94\x92", "/\xF5\x80\x80\x80", "/\xC3", "/\x80"})
        CHECK_THAT(refused(bad), contains("characters"));
    CHECK_THAT(refused(std::string{"/a\0b", 4}), contains("characters"));
}

TEST_CASE("node names are those of Curator and kazoo")
{
    auto const token = owner_token::from_bits(0x0123456789abcdef, 0xfedcba9876543210);
    CHECK(node_prefix(naming::curator, token) == "_c_01234567-89ab-cdef-fedc-ba9876543210-lock-");
    CHECK(node_prefix(naming::kazoo, token) == "0123456789abcdeffedcba9876543210__lock__");
    CHECK(sequence_of("_c_01234567-89ab-cdef-fedc-ba9876543210-lock-0000000012") == 12U);
    CHECK(sequence_of("0123456789abcdeffedcba9876543210__lock__0000000013") == 13U);
    CHECK(sequence_of("0123456789abcdeffedcba9876543210__rlock__0000000014") == 14U);
    CHECK(sequence_of("lock-2147483647") == 2147483647U);
    CHECK(sequence_of("lock--2147483648") == 2147483647U);
    CHECK(sequence_of("lock--999999999") == 2147483647U);  // ten characters, too
    CHECK(sequence_of("lock--000000001") == 2147483647U);
    CHECK(sequence_of("lock--0000000001") == 2147483647U);
    for (auto const* const other : {"", "lock-", "lock-1", "lock-00000000001", "lock-000000000x", "lock-2147483648",
                                    "leases", "_c_1-__read__0000000001"})
        CHECK_FALSE(sequence_of(other).has_value());
}

TEST_CASE("a connection string names servers and perhaps a root")
{
    CHECK(parse_servers("a:1").hosts == "a:1");
    CHECK(parse_servers("a:1,[::1]:2,10.0.0.1:65535/app/x").hosts == "a:1,::1:2,10.0.0.1:65535");
    CHECK(parse_servers("a:1,[::1]:2,10.0.0.1:65535/app/x").text == "a:1,[::1]:2,10.0.0.1:65535");
    CHECK(parse_servers("[fe80::1%eth0]:2181").hosts == "fe80::1%eth0:2181");
    CHECK(parse_servers("a:02181,b:00009").hosts == "a:2181,b:9");
    CHECK(parse_servers("a:1/app/x").chroot == "/app/x");
    CHECK(parse_servers("a:1/").chroot.empty());
    auto const refused_servers = [](std::string const& text) {
        return refusal([&] { static_cast<void>(parse_servers(text)); });
    };
    CHECK_THAT(refused_servers(""), contains("empty"));
    CHECK_THAT(refused_servers("a:1,"), contains("empty"));
    CHECK_THAT(refused_servers(":1"), contains("empty"));
    CHECK_THAT(refused_servers("a"), contains("no port"));
    CHECK_THAT(refused_servers("a:"), contains("port"));
    CHECK_THAT(refused_servers("a:0"), contains("port"));
    CHECK_THAT(refused_servers("a:65536"), contains("port"));
    for (auto const* const bad : {"::1:2181", "2001:db8::1", "[::1:2181", "a]:1", "a[::1]:1"})
        CHECK_THAT(refused_servers(bad), contains("[::1]:2181"));
    for (auto const* const bad :
         {"[]:1", "[a]:1", "[::1]x:1", "[1.2.3.4]:1", "[::1%]:1", "[::1%a]:]:1", "[::1%[]:1", "[::1%:]:1"})
        CHECK_THAT(refused_servers(bad), contains("bracket"));
    CHECK_THAT(refused_servers("a:1/" + std::string(1024, 'x')), contains("1024"));
    CHECK_THAT(refused_servers("a b:1"), contains("blank"));
    CHECK_THAT(refused_servers("zookeeper://a:1"), contains("without zookeeper://"));
    using namespace std::string_literals;
    CHECK_THAT(refused_servers("a\0b:1"s), contains("control character"));
    CHECK_THAT(refused_servers("a\x7f:1"), contains("control character"));
    CHECK_THAT(refused_servers("a:1/app/"), contains("slash"));
    CHECK_THAT(refused_servers("a:1//"), contains("slash"));
}

TEST_CASE("a root after each server, and options, are refused")
{
    auto const refused_servers = [](std::string const& text) {
        return refusal([&] { static_cast<void>(parse_servers(text)); });
    };
    CHECK_THAT(refused_servers("a:2181/app,b:2181/app"), contains("it stands once, after the last server"));
    CHECK_THAT(refused_servers("a:2181/,b:2181/"), contains("it stands once, after the last server"));
    for (auto const* const text : {"a:2181/app?password=secret", "a:2181?password=secret", "a:2181,b?password=secret",
                                   "?secret", "zookeeper://a:2181/app?password=secret", "a:2181/app?x=secret,b:2181"}) {
        CAPTURE(text);
        auto const what = refused_servers(text);
        CHECK_THAT(what, contains("servers"));
        CHECK_THAT(what, !contains("secret"));
    }
    CHECK_THAT(refused_servers("a:2181/app?session_timeout=5s"),
               contains("servers: a question mark is in them; there are no options"));
}

TEST_CASE("servers have one address, in whatever order and letters they are named")
{
    auto const address = [](std::string_view text) { return parse_servers(text).address; };
    CHECK(address("b:2181,a:2181,[::1]:2") == "::1:2,a:2181,b:2181");
    CHECK(address("A.example:02181,b:9,a.Example:2181/app") == address("b:9,a.example:2181"));
    CHECK(address("a:1,b:2") != address("a:2,b:1"));
    CHECK(address("a:1,b:1") != address("a:1"));
    CHECK(address("[FE80::1%Eth0]:1") == "fe80::1%Eth0:1");
    CHECK(parse_servers("b:1,A:1").hosts == "b:1,A:1");
}

TEST_CASE("no refusal of servers repeats a password that was written into them")
{
    CHECK(parse_servers("a:1/app@x").chroot == "/app@x");
    for (auto const* const text : {"app:secret@a:1/locks", "app:secret@a", "secret@a:1", "a:1,app:secret@b:2",
                                   "app:se/cret@a:1", "zookeeper://app:secret@a:1", "app:1/secret@a:1/", "app:secret",
                                   "secret:x,a:1", "app:1/secret,a:1", "app:1/secret//a:1"}) {
        CAPTURE(text);
        auto const what = refusal([&] { static_cast<void>(parse_servers(text)); });
        CHECK_THAT(what, contains("servers"));
        CHECK_THAT(what, !contains("secret") && !contains("cret"));
    }
    CHECK_THAT(refusal([] { static_cast<void>(parse_servers("app:secret@a:1/locks")); }), contains("auth_credential"));
}

TEST_CASE("no path is longer than what can be watched many times over")
{
    auto const path = "/" + std::string(1023, 'x');
    CHECK(lock_path(path) == path);
    CHECK_THAT(refused(path + 'x'), contains("1025 bytes; at most 1024"));
    CHECK_THAT(refusal([&] { static_cast<void>(lock_path(path, "/app")); }), contains("1028 bytes"));
    CHECK(lock_path("/" + std::string(1019, 'x'), "/app").size() == 1024);
}

TEST_CASE("what makes a request larger than a server takes is refused beforehand")
{
    using holdfast::zookeeper::check_session;
    CHECK_NOTHROW(check_session({.label = std::string(4096, 'x')}));
    CHECK_THAT(refusal([] { check_session({.label = std::string(1'100'000, 'x')}); }),
               contains("label has 1100000 bytes; at most 4096"));
    CHECK_THAT(refusal([] {
                   check_session({.auth_scheme = "digest", .auth_credential = "user:" + std::string(65'536, 'x')});
               }),
               contains("auth_credential"));
}

TEST_CASE("a label that would ask its own session to release its locks is refused")
{
    using holdfast::zookeeper::check_session;
    CHECK_NOTHROW(check_session({.label = "billing__REVOKE__"}));
    CHECK_THAT(refusal([] { check_session({.label = "billing __REVOKE__"}); }), contains("__REVOKE__"));
}

TEST_CASE("a session too short to confirm a lock in is refused")
{
    using holdfast::zookeeper::check_session;
    CHECK_NOTHROW(check_session({.session_timeout = std::chrono::milliseconds{20}}));
    for (auto const bad : {0, 5})
        CHECK_THAT(refusal([&] { check_session({.session_timeout = std::chrono::milliseconds{bad}}); }),
                   contains("session_timeout"));
}
