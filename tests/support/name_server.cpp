// SPDX-License-Identifier: MIT
#include "name_server.hpp"

#include "loopback.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t head_size = 12;
constexpr char type_address = 1;

/// Returns: the answer to a question: 127.0.0.1 where an address was asked for, that there is nothing where it was
/// something else. None where it is not one question.
std::optional<std::string> answer_to(std::string_view packet)
{
    if (packet.size() < head_size || packet[4] != 0 || packet[5] != 1) return std::nullopt;
    auto end = head_size;
    while (end < packet.size() && packet[end] != 0) end += static_cast<unsigned char>(packet[end]) + 1U;
    end += 5;  // the end of the name, type and class
    if (end > packet.size()) return std::nullopt;
    bool const address = packet[end - 4] == 0 && packet[end - 3] == type_address;

    using namespace std::string_view_literals;
    std::string answer{packet.substr(0, 2)};
    answer += "\x81\x80\0\1\0"sv;  // a response, recursion was asked for and is there, no error; one question
    answer += address ? '\1' : '\0';
    answer += "\0\0\0\0"sv;
    answer += packet.substr(head_size, end - head_size);
    if (address)
        answer += "\xC0\x0C\0\1\0\1\0\0\0\0\0\4\x7F\0\0\1"sv;  // the name asked for; not to be remembered; 127.0.0.1
    return answer;
}

}  // namespace

class name_server::impl {
public:
    impl(std::string const& address, std::uint16_t port)
        : socket_{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)}
    {
        ::sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(port);
        if (::inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1)
            throw std::system_error{EINVAL, std::system_category(), address};
        if (!socket_ || ::bind(socket_.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at) != 0)
            throw std::system_error{errno, std::system_category(), address};
        thread_ = std::jthread{[this](std::stop_token const& stop) { serve(stop); }};
    }

    /// Effects: from now on a question takes `delay`; none: for ever.
    void set(std::optional<std::chrono::milliseconds> delay)
    {
        std::scoped_lock const guard{mutex_};
        delay_ = delay;
        known_at_.reset();
    }

    [[nodiscard]] std::size_t questions() const noexcept { return questions_; }

private:
    struct waiting {
        ::sockaddr_in peer;
        std::string answer;
        steady::time_point due;
    };

    void serve(std::stop_token const& stop)
    {
        while (!stop.stop_requested()) {
            ::pollfd one{socket_.get(), POLLIN, 0};
            if (::poll(&one, 1, 5) > 0) listen();
            auto const now = steady::now();
            std::erase_if(waiting_, [&](waiting const& w) {
                if (w.due > now) return false;
                ::sendto(socket_.get(), w.answer.data(), w.answer.size(), 0,
                         reinterpret_cast<::sockaddr const*>(&w.peer), sizeof w.peer);
                return true;
            });
        }
    }

    void listen()
    {
        std::array<char, 512> packet{};
        ::sockaddr_in peer{};
        ::socklen_t size = sizeof peer;
        auto const got =
            ::recvfrom(socket_.get(), packet.data(), packet.size(), 0, reinterpret_cast<::sockaddr*>(&peer), &size);
        if (got < 0) return;
        auto answer = answer_to({packet.data(), static_cast<std::size_t>(got)});
        if (!answer) return;
        ++questions_;
        std::scoped_lock const guard{mutex_};
        if (!delay_) return;
        if (!known_at_) known_at_ = steady::now() + *delay_;
        waiting_.push_back({peer, std::move(*answer), *known_at_});
    }

    file_descriptor socket_;
    std::mutex mutex_;
    std::optional<std::chrono::milliseconds> delay_{0};
    std::optional<steady::time_point> known_at_;
    std::atomic<std::size_t> questions_{0};
    std::vector<waiting> waiting_;
    std::jthread thread_;
};

name_server::name_server(std::string const& address, std::uint16_t port) : impl_{std::make_unique<impl>(address, port)}
{
}
name_server::~name_server() = default;

void name_server::silence() { impl_->set(std::nullopt); }
void name_server::answer_after(std::chrono::milliseconds delay) { impl_->set(delay); }
std::size_t name_server::questions() const noexcept { return impl_->questions(); }

}  // namespace holdfast::test
