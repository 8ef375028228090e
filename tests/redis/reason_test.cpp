// SPDX-License-Identifier: MIT
//
// Why a server cannot be reached, in the words of whoever knows.
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/loopback.hpp"

#include <holdfast/io/tls_error.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::file_descriptor;
using holdfast::test::redis_server;

namespace {

/// A server that answers whoever connects with the same words, without having been asked, and hangs up.
class rude_server {
public:
    explicit rude_server(std::string_view words) : words_{words}
    {
        ::listen(at_.fd.get(), 16);
        thread_ = std::jthread{[this](std::stop_token const& stop) {
            while (!stop.stop_requested()) {
                file_descriptor const one{::accept(at_.fd.get(), nullptr, nullptr)};
                if (one && !words_.empty()) ::send(one.get(), words_.data(), words_.size(), MSG_NOSIGNAL);
                if (one && !words_.empty())
                    static_cast<void>(
                        ::recv(one.get(), buffer_, sizeof buffer_, 0));  // until the client has gone or asks
            }
        }};
    }
    ~rude_server()
    {
        thread_.request_stop();
        ::shutdown(at_.fd.get(), SHUT_RDWR);
    }

    [[nodiscard]] std::string url(std::string const& user = "u:canary@") const
    {
        return "redis://" + user + "127.0.0.1:" + std::to_string(at_.port);
    }

private:
    holdfast::test::bound_socket at_ = holdfast::test::bind_free_port();
    std::string_view words_;
    char buffer_[512] = {};
    std::jthread thread_;
};

/// Returns: what is said of a lock at `url`, which cannot be had.
std::string complaint(std::string const& url, std::error_code* code = nullptr,
                      std::chrono::milliseconds operation_timeout = 200ms)
{
    client redis{url, {.operation_timeout = operation_timeout, .connect_timeout = 2 * operation_timeout}};
    mutex m{redis, "orders", {.unavailable_after = 1s}};
    std::string what;
    auto const got = code_of([&] { m.lock(); }, &what);
    CHECK((got == errc::unavailable || got == errc::misconfigured));
    CHECK_THAT(what, contains("orders") && !contains("canary"));
    if (code) *code = got;
    return what;
}

}  // namespace

TEST_CASE("a refused connection is said to be refused, by lock, try_lock and the callers of a quorum")
{
    auto const nobody = holdfast::test::bind_free_port();  // bound, not listening
    auto const url = "redis://:canary@127.0.0.1:" + std::to_string(nobody.port);
    CHECK_THAT(complaint(url), contains("Connection refused"));
    std::string what;
    client redis{url};
    mutex m{redis, "orders"};
    CHECK(code_of([&] { (void)m.try_lock(); }, &what) == errc::unavailable);
    CHECK_THAT(what, contains("Connection refused"));
    holdfast::redlock::masters two{{url, "redis://localhost:" + std::to_string(nobody.port)}};
    holdfast::redlock::mutex n{two, "orders"};
    CHECK(code_of([&] { (void)n.try_lock(); }, &what) == errc::unavailable);
    CHECK_THAT(what, contains("no quorum of 2 masters") && contains("Connection refused"));
}

TEST_CASE("a name that nobody knows is said not to be known")
{
    // With no name server to ask, the system says so instead.
    CHECK_THAT(complaint("redis://:canary@no-such-host.invalid"),
               contains("not known") || contains("name resolution") || contains("not resolved"));
}

TEST_CASE("a socket that does not exist is said not to exist")
{
    CHECK_THAT(complaint("unix://:canary@/tmp/no/such/socket"), contains("No such file or directory"));
}

TEST_CASE("a server that accepts and does not answer the greeting is said not to answer it")
{
    redis_server server{{.password = "canary"}};
    server.pause();
    CHECK_THAT(complaint(server.url()), contains("the greeting was not answered"));
}

TEST_CASE("a server that hangs up without a word may expect TLS, and the message says so")
{
    rude_server const server{""};
    CHECK_THAT(complaint(server.url(), nullptr, 10s), contains("without an answer") && contains("rediss://"));
}

TEST_CASE("a server in protected mode says so at once")
{
    rude_server const server{"-DENIED Redis is running in protected mode because protected mode is enabled\r\n"};
    std::error_code code;
    CHECK_THAT(complaint(server.url(), &code, 10s), contains("protected mode"));
    CHECK(code == holdfast::redis::errc::authentication_failed);
}

TEST_CASE("a server that answers in TLS is known for it at once")
{
    using std::string_view_literals::operator""sv;
    rude_server const server{"\x15\x03\x01\x00\x02\x02\x46"sv};  // alert: protocol_version
    std::error_code code;
    CHECK_THAT(complaint(server.url(), &code, 10s), contains("rediss://"));
    CHECK(code == holdfast::tls::errc::tls_expected);
}

TEST_CASE("a server that answers something else is no Redis server")
{
    rude_server const server{"HTTP/1.1 400 Bad Request\r\n\r\n"};
    std::error_code code;
    auto const url = server.url(GENERATE("u:canary@", ""));  // without a user nothing is asked before the lock
    CHECK_THAT(complaint(url, &code, 10s), contains("is this a Redis server?"));
    CHECK(code == holdfast::redis::errc::protocol_error);
    client redis{url, {.operation_timeout = 10s, .connect_timeout = 1min}};
    mutex m{redis, "orders"};
    CHECK(code_of([&] { (void)m.try_lock(); }) == holdfast::redis::errc::protocol_error);
}
