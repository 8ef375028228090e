// SPDX-License-Identifier: MIT
#include "loopback.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fstream>
#include <random>
#include <system_error>

namespace holdfast::test {
namespace {

::sockaddr_in loopback(std::uint16_t port)
{
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

std::uint16_t random_port()
{
    unsigned first_ephemeral = 32768;
    std::ifstream{"/proc/sys/net/ipv4/ip_local_port_range"} >> first_ephemeral;
    if (first_ephemeral < 20000 || first_ephemeral > 65535) return 0;  // little room below it: let the system choose
    std::random_device device;
    return static_cast<std::uint16_t>(std::uniform_int_distribution<unsigned>{10000, first_ephemeral - 1}(device));
}

file_descriptor tcp_socket()
{
    file_descriptor fd{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!fd) throw std::system_error{errno, std::system_category(), "socket"};
    return fd;
}

}  // namespace

bound_socket bind_free_port()
{
    for (int attempt = 0; attempt < 1000; ++attempt) {
        file_descriptor fd = tcp_socket();
        auto address = loopback(random_port());
        if (::bind(fd.get(), reinterpret_cast<::sockaddr*>(&address), sizeof address) != 0) continue;
        int const yes =
            1;  // not before, or another that is bound and does not listen could have the port, too; a proxy listens again
        ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        ::socklen_t length = sizeof address;
        ::getsockname(fd.get(), reinterpret_cast<::sockaddr*>(&address), &length);
        return {std::move(fd), ntohs(address.sin_port)};
    }
    throw std::system_error{EADDRINUSE, std::system_category(), "no free port on 127.0.0.1"};
}

file_descriptor start_connecting(std::uint16_t port)
{
    file_descriptor fd = tcp_socket();
    int const yes = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    auto const address = loopback(port);
    // A refusal shows at the first read or write.
    static_cast<void>(::connect(fd.get(), reinterpret_cast<::sockaddr const*>(&address), sizeof address));
    return fd;
}

}  // namespace holdfast::test
