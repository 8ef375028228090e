// SPDX-License-Identifier: MIT
//
// A server whose name has several addresses, of which the first does not answer.
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/loopback.hpp"
#include "support/redis_server.hpp"

#include <holdfast/redis.hpp>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using holdfast::test::file_descriptor;

namespace {

constexpr auto dead_address = "127.0.0.2";
constexpr auto name_of_two = "two-addresses.invalid";

::sockaddr_in dead(std::uint16_t port)
{
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    ::inet_pton(AF_INET, dead_address, &at.sin_addr);
    return at;
}

/// A port of `dead_address` at which the system answers no new connection: it has as many as it takes.
class black_hole {
public:
    explicit black_hole(std::uint16_t port)
    {
        auto const at = dead(port);
        REQUIRE(::bind(listens_.get(), reinterpret_cast<::sockaddr const*>(&at), sizeof at) == 0);
        REQUIRE(::listen(listens_.get(), 0) == 0);
        while (connects(at)) REQUIRE(some_.size() < 100);
    }

private:
    bool connects(::sockaddr_in const& at)
    {
        auto const& one = some_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (::connect(one.get(), reinterpret_cast<::sockaddr const*>(&at), sizeof at) == 0) return true;
        ::pollfd wait{one.get(), POLLOUT, 0};
        return ::poll(&wait, 1, 500) > 0;
    }

    file_descriptor listens_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::vector<file_descriptor> some_;
};

}  // namespace

/// As the system's; `name_of_two` has `dead_address`, and then 127.0.0.1.
extern "C" int getaddrinfo(char const* node, char const* service, addrinfo const* hints, addrinfo** result)
{
    static auto const of_system = reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    if (!node || std::strcmp(node, name_of_two) != 0) return of_system(node, service, hints, result);
    if (hints->ai_flags & AI_NUMERICHOST) return EAI_NONAME;
    if (int const error = of_system(dead_address, service, hints, result); error != 0) return error;
    return of_system("127.0.0.1", service, hints, &(*result)->ai_next);
}

TEST_CASE("a server is reached at the second address of its name if the first does not answer")
{
    holdfast::test::redis_server server;
    black_hole const first{server.port()};
    holdfast::redis::client redis{"redis://" + std::string{name_of_two} + ":" + std::to_string(server.port()),
                                  {.connect_timeout = 200ms}};
    holdfast::redis::mutex m{redis, "orders"};
    CHECK(holdfast::test::eventually([&] {
        try {
            return m.try_lock();
        } catch (holdfast::error const& e) {
            CHECK(e.code() == holdfast::errc::unavailable);
            return false;
        }
    }));
}
