// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/refusal.hpp"

#include <holdfast/redis/endpoint.hpp>

#include <string>

using holdfast::redis::endpoint;
using holdfast::redis::parse_url;
using holdfast::test::contains;
using holdfast::test::refusal;

namespace {

std::string refused(std::string const& url)
{
    return refusal([&] { (void)parse_url(url); });
}

}  // namespace

TEST_CASE("a URL says host, port and database, and what it leaves out has its default")
{
    CHECK(parse_url("redis://h") == endpoint{.host = "h"});
    CHECK(parse_url("redis://h:1") == endpoint{.host = "h", .port = 1});
    CHECK(parse_url("redis://h:65535/") == endpoint{.host = "h", .port = 65535});
    CHECK(parse_url("redis://10.0.0.1/15") == endpoint{.host = "10.0.0.1", .database = 15});
    CHECK(parse_url("redis://h:7000/1000000") == endpoint{.host = "h", .port = 7000, .database = 1'000'000});
    CHECK(parse_url("redis://REDIS.Example") == endpoint{.host = "redis.example"});
}

TEST_CASE("the address of an IPv6 host stands in brackets")
{
    CHECK(parse_url("redis://[::1]") == endpoint{.host = "::1"});
    CHECK(parse_url("redis://[FE80::1]:7000/2") == endpoint{.host = "fe80::1", .port = 7000, .database = 2});
    CHECK(parse_url("redis://[FE80::A%Wan0]") == endpoint{.host = "fe80::a%Wan0"});
    CHECK(parse_url("redis://[fe80::1%25eth0]:1") == endpoint{.host = "fe80::1%eth0", .port = 1});
    CHECK(parse_url("redis://u:p@[::1]") == endpoint{.host = "::1", .user = "u", .password = "p"});
}

TEST_CASE("a URL says user and password, with reserved characters escaped")
{
    CHECK(parse_url("redis://u@h") == endpoint{.host = "h", .user = "u"});
    CHECK(parse_url("redis://u:p@h") == endpoint{.host = "h", .user = "u", .password = "p"});
    CHECK(parse_url("redis://:p@h") == endpoint{.host = "h", .password = "p"});
    CHECK(parse_url("redis://:@h") == endpoint{.host = "h"});
    CHECK(parse_url("redis://u:a:b@h") == endpoint{.host = "h", .user = "u", .password = "a:b"});
    CHECK(parse_url("redis://u:a@b@h") == endpoint{.host = "h", .user = "u", .password = "a@b"});
    CHECK(parse_url("redis://%75:p%40%3a%2F%3f%25@h") == endpoint{.host = "h", .user = "u", .password = "p@:/?%"});
}

TEST_CASE("a URL of rediss says the same, and TLS")
{
    CHECK(parse_url("rediss://h") == endpoint{.host = "h", .tls = true});
    CHECK(parse_url("rediss://u:p@[::1]:7000/2") ==
          endpoint{.host = "::1", .port = 7000, .user = "u", .password = "p", .database = 2, .tls = true});
    CHECK(parse_url("rediss://u:p@h:7000/2").describe() == "rediss://h:7000/2");
    CHECK_FALSE(parse_url("redis://h").tls);
    CHECK_FALSE(parse_url("unix:///run/r").tls);
    CHECK(parse_url("rediss://h").same_server(parse_url("redis://h")));
}

TEST_CASE("a Unix socket has a path, credentials and a database")
{
    CHECK(parse_url("unix:///run/redis.sock") == endpoint{.unix_path = "/run/redis.sock"});
    CHECK(parse_url("unix:///run/redis.sock?db=3") == endpoint{.unix_path = "/run/redis.sock", .database = 3});
    CHECK(parse_url("unix:///run/a%20b?") == endpoint{.unix_path = "/run/a b"});
    CHECK(parse_url("unix:///run/a@b") == endpoint{.unix_path = "/run/a@b"});
    CHECK(parse_url("unix://u:p@/run/r?db=1&db=2") ==
          endpoint{.unix_path = "/run/r", .user = "u", .password = "p", .database = 2});
    CHECK(parse_url("unix:///" + std::string(106, 'x')).unix_path.size() == 107);
}

TEST_CASE("a URL that is wrong is refused with the name of the part")
{
    auto const [url, part] = GENERATE(table<std::string, std::string>({
        {"", "scheme"},
        {"127.0.0.1:6379", "scheme"},
        {"redis:/h", "scheme"},
        {"REDIS://h", "scheme"},
        {"http://h", "scheme"},
        {"rediss:/h", "scheme"},
        {"redisss://h", "scheme"},
        {"rediss://", "host"},
        {"rediss://h:0", "port"},
        {"rediss://h?db=1", "rediss://"},
        {"redis://", "host"},
        {"redis:///1", "host"},
        {"redis://:6379", "host"},
        {"redis://u:p@", "host"},
        {"redis://u:p@:6379", "host"},
        {"redis://[]", "host"},
        {"redis://[::1", "host"},
        {"redis://[::1]6379", "host"},
        {"redis://a%zz", "host"},
        {"redis://a%00b", "host"},
        {"redis://h:", "port"},
        {"redis://h:0", "port"},
        {"redis://h:65536", "port"},
        {"redis://h:99999999999999999999", "port"},
        {"redis://h:-1", "port"},
        {"redis://h:+1", "port"},
        {"redis://h: 1", "port"},
        {"redis://h:1x", "port"},
        {"redis://::1", "port"},
        {"redis://[::1]:", "port"},
        {"redis://h/x", "database"},
        {"redis://h/-1", "database"},
        {"redis://h/1000001", "database"},
        {"redis://h/1/2", "database"},
        {"redis://a,redis://b", "a comma is in it"},
        {"redis://a:6379,b:6379", "a comma is in it"},
        {"redis://u%@h", "user"},
        {"redis://u%4@h", "user"},
        {"redis://u%00@h", "user"},
        {"redis://:p%zz@h", "password"},
        {"redis://:p%00@h", "password"},
        {"redis://:p?q@h", "password"},
        {"redis://:p/q@h", "a slash in it"},
        {"redis://h?db=1", "db"},
        {"redis://h?timeout=1", "timeout"},
        {"unix://", "path"},
        {"unix://relative", "path"},
        {"unix://u:p@relative", "path"},
        {"unix:///a%00b", "path"},
        {"unix:///" + std::string(107, 'x'), "107"},
        {"unix:///r?db=", "db"},
        {"unix:///r?db=x", "db"},
        {"unix:///r?db=1&timeout=2", "timeout"},
        {"unix:///r?database=1", "database"},
        {"unix:///u:p@/r", "password"},
        {"unix:///:p@/r", "password"},
        {"redis://.example.com", "host"},
        {"rediss://u:p@.example.com", "host"},
        {"redis://" + std::string(256, 'x'), "255"},
    }));
    CAPTURE(url);
    CHECK_THAT(refused(url), contains(part) && contains("Redis URL"));
}

TEST_CASE("a host with a blank or a control character in it is refused")
{
    for (auto const* text : {"redis://127.0.0.1 :1", "redis:// 127.0.0.1", "redis://a b", "redis://a%0a", "redis://a\t:1"}) {
        CAPTURE(text);
        CHECK_THAT(refused(text), contains("host"));
    }
}

TEST_CASE("a zero byte is refused wherever it stands")
{
    for (auto const* url : {"redis://a_b", "redis://u_v@h", "redis://:p_q@h", "unix:///a_b"}) {
        std::string text = url;
        text[text.find('_')] = '\0';
        CHECK_THAT(refused(text), contains("zero byte"));
    }
}

TEST_CASE("no refusal repeats a password")
{
    for (auto const* url : {"redis:/:secret@h",           "rediss://:secret@h:x",      "http://u:secret@h",
                            "redis://:secret%@h",         "redis://:secret%00@h",      "redis://:?secret@h",
                            "redis://:secret?secret@h",   "redis://:/secret@h",        "redis://:secret@",
                            "redis://:secret@h:x",        "redis://u:secret:@[x",      "redis://:secret@h/x",
                            "redis://:secret@h?db=1",     "redis://h?password=secret", "unix://:secret@relative",
                            "unix://:secret?x=secret@/r", "unix:///r?password=secret", "unix:///r?db=secret",
                            "unix:///u:secret@/r",        "unix:///:secret@/r",        "unix:///u:secret@r/a@b",
                            "redis://u:p?secret",         "rediss://u:1?secret",       "redis://:1?secret&x=y",
                            "unix://u:p?secret",          "unix:///r?secret",          "unix:///r?db=1&secret"}) {
        CAPTURE(url);
        auto const what = refused(url);
        CHECK_THAT(what, contains("Redis URL"));
        CHECK_THAT(what, !contains("secret"));
    }
}

TEST_CASE("an endpoint is described as a URL without user and password, which means the same place")
{
    for (auto const* url : {"redis://u:secret@h", "rediss://u:secret@h:7000/3", "redis://u:secret@h:7000/3",
                            "redis://[::1]:7000", "unix://u:secret@/run/r", "unix:///run/r?db=3"}) {
        auto const one = parse_url(url);
        auto const text = one.describe();
        CAPTURE(url, text);
        CHECK_THAT(text, !contains("secret") && !contains("u:"));
        auto const again = parse_url(text);
        CHECK(again.same_server(one));
        CHECK(again.database == one.database);
    }
    CHECK(parse_url("redis://h").describe() == "redis://h:6379");
    CHECK(parse_url("redis://[::1]:7000/3").describe() == "redis://[::1]:7000/3");
    CHECK(parse_url("unix:///run/r?db=3").describe() == "unix:///run/r?db=3");
}

TEST_CASE("a description has no byte that a terminal obeys")
{
    CHECK(endpoint{.host = "a\x1b[2jb\r\n"}.describe() == "redis://a\\x1b[2jb\\x0d\\x0a:6379");
    CHECK(parse_url("redis://[\xff%25]:1").describe() == "redis://\\xff%25:1");
    CHECK(parse_url("unix:///run/%1b[31m%7f").describe() == "unix:///run/\\x1b[31m\\x7f");
    CHECK(parse_url("unix:///a:b%40c").describe() == "unix:///a:b@c");
}

TEST_CASE("two endpoints are the same server whatever user and database they name")
{
    auto const one = parse_url("redis://u:p@h:7000/1");
    CHECK(one.same_server(parse_url("redis://H:7000/2")));
    CHECK_FALSE(one.same_server(parse_url("redis://h:7001/1")));
    CHECK_FALSE(one.same_server(parse_url("redis://i:7000/1")));
    CHECK_FALSE(one.same_server(parse_url("unix:///run/r")));
    CHECK(parse_url("unix:///run/r?db=1").same_server(parse_url("unix:///run/r")));
    CHECK_FALSE(parse_url("unix:///run/r").same_server(parse_url("unix:///run/s")));
}
