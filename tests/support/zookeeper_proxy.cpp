// SPDX-License-Identifier: MIT
#include "zookeeper_proxy.hpp"

#include "loopback.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

std::int32_t number(std::string const& packet, std::size_t at)
{
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = (value << 8U) | static_cast<unsigned char>(packet[at + i]);
    return static_cast<std::int32_t>(value);
}

/// Returns: the first whole packet of `stream`, its length in front, taken out of it.
std::optional<std::string> take_packet(std::string& stream)
{
    if (stream.size() < 4) return std::nullopt;
    auto const size = static_cast<std::size_t>(number(stream, 0)) + 4;
    if (stream.size() < size) return std::nullopt;
    auto packet = stream.substr(0, size);
    stream.erase(0, size);
    return packet;
}

void append_number(std::string& packet, std::int32_t value)
{
    for (unsigned shift = 32; shift > 0; shift -= 8) packet += static_cast<char>(static_cast<std::uint32_t>(value) >> (shift - 8));
}

/// Returns: a request that changes nothing and can be answered at any time, whether there is a node "/", with the number of `request`.
std::string harmless(std::string const& request)
{
    constexpr std::int32_t exists = 3;
    std::string packet;
    append_number(packet, 14);
    packet += request.substr(4, 4);
    append_number(packet, exists);
    append_number(packet, 1);
    packet += '/';
    packet += '\0';  // and sets no watch
    return packet;
}

/// Returns: an answer with an error, with the numbers of the request and the transaction that `answer` has.
std::string failed(std::string const& answer, std::int32_t code)
{
    std::string packet;
    append_number(packet, 16);
    packet += answer.substr(4, 12);
    append_number(packet, code);
    return packet;
}

bool send_all(int fd, std::string const& text)
{
    for (std::size_t sent = 0; sent < text.size();) {
        auto const n = ::send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (n > 0) {
            sent += static_cast<std::size_t>(n);
            continue;
        }
        ::pollfd one{fd, POLLOUT, 0};
        if (errno != EAGAIN || ::poll(&one, 1, 5000) <= 0) return false;
    }
    return true;
}

}  // namespace

class zookeeper_proxy::impl {
public:
    explicit impl(std::uint16_t target) : target_{target}, bound_{bind_free_port()}
    {
        ::listen(bound_.fd.get(), 64);
        thread_ = std::jthread{[this](std::stop_token const& stop) { accept(stop); }};
    }

    enum class effect { drop, swallow, swallow_and_cut, refuse };

    struct fault {
        operation what;
        effect then;
        std::int32_t code = 0;
        int times = 1;
    };

    std::uint16_t target_;
    bound_socket bound_;
    mutable std::mutex mutex_;
    std::optional<fault> fault_;
    std::map<std::int32_t, int> seen_;
    int struck_ = 0;
    std::atomic<bool> silent_{false};
    std::atomic<bool> cut_{false};

private:
    /// Requests, and what becomes of their answers.
    using struck_answers = std::map<std::int32_t, fault>;

    struct connection {
        std::atomic<bool> ended{false};
        std::jthread thread;
    };

    void accept(std::stop_token const& stop)
    {
        std::list<connection> all;
        while (!stop.stop_requested()) {
            // A client whose server is gone connects again many times a second: threads that have ended are not kept.
            all.remove_if([](connection const& one) { return one.ended.load(); });
            ::pollfd one{bound_.fd.get(), POLLIN, 0};
            if (silent_ || ::poll(&one, 1, 20) <= 0) {
                if (silent_) std::this_thread::sleep_for(std::chrono::milliseconds{5});
                continue;
            }
            auto client = file_descriptor{::accept4(bound_.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
            if (!client || cut_) continue;
            auto& made = all.emplace_back();
            made.thread = std::jthread{[this, &made, c = std::move(client)](std::stop_token const& end) {
                relay(c.get(), end);
                made.ended = true;
            }};
        }
    }

    void relay(int client, std::stop_token const& stop)
    {
        auto const server = start_connecting(target_);
        ::pollfd up{server.get(), POLLOUT, 0};
        ::poll(&up, 1, 5000);
        std::string to_server;
        std::string to_client;
        bool first = true;
        struck_answers struck_here;
        while (!stop.stop_requested() && !cut_) {
            if (silent_) {
                std::this_thread::sleep_for(std::chrono::milliseconds{5});
                continue;
            }
            std::array<::pollfd, 2> both{{{client, POLLIN, 0}, {server.get(), POLLIN, 0}}};
            if (::poll(both.data(), 2, 20) <= 0) continue;
            if ((both[0].revents != 0 && !read(client, to_server)) || (both[1].revents != 0 && !read(server.get(), to_client))) break;
            if (silent_) continue;
            bool open = true;
            while (auto packet = open ? take_packet(to_server) : std::nullopt) {
                open = first || pass_request(*packet, struck_here);
                first = false;
                open = open && send_all(server.get(), *packet);
            }
            while (auto const packet = open ? take_packet(to_client) : std::nullopt) {
                auto const found = struck_here.find(number(*packet, 4));
                bool const as_it_is = found == struck_here.end();
                bool const refused = !as_it_is && found->second.then == effect::refuse;
                if (!as_it_is && found->second.then == effect::swallow_and_cut) cut_ = true;
                open = (as_it_is || refused) && send_all(client, as_it_is ? *packet : failed(*packet, found->second.code));
            }
            if (!open) break;
        }
        ::shutdown(client, SHUT_RDWR);
    }

    /// Returns: whether it reaches the server, in the form that it has then.
    bool pass_request(std::string& packet, struck_answers& struck_here)
    {
        auto const type = packet.size() < 12 ? 0 : number(packet, 8);
        std::scoped_lock const guard{mutex_};
        ++seen_[type];
        if (!fault_ || fault_->what != type) return true;
        auto const one = *fault_;
        if (--fault_->times == 0) fault_.reset();
        ++struck_;
        if (one.then == effect::drop) return false;
        struck_here.emplace(number(packet, 4), one);
        if (one.then == effect::refuse) packet = harmless(packet);
        return true;
    }

    static bool read(int fd, std::string& into)
    {
        std::array<char, 16 * 1024> part{};
        auto const got = ::recv(fd, part.data(), part.size(), 0);
        if (got > 0) into.append(part.data(), static_cast<std::size_t>(got));
        return got > 0 || (got < 0 && errno == EAGAIN);
    }

    std::jthread thread_;
};

zookeeper_proxy::zookeeper_proxy(std::uint16_t target) : impl_{std::make_unique<impl>(target)} {}
zookeeper_proxy::~zookeeper_proxy() = default;

std::string zookeeper_proxy::address() const { return "127.0.0.1:" + std::to_string(impl_->bound_.port); }

void zookeeper_proxy::drop_next(operation what)
{
    std::scoped_lock const guard{impl_->mutex_};
    impl_->fault_ = impl::fault{what, impl::effect::drop};
}

void zookeeper_proxy::swallow_next(operation what)
{
    std::scoped_lock const guard{impl_->mutex_};
    impl_->fault_ = impl::fault{what, impl::effect::swallow};
}

void zookeeper_proxy::swallow_next_and_cut(operation what)
{
    std::scoped_lock const guard{impl_->mutex_};
    impl_->fault_ = impl::fault{what, impl::effect::swallow_and_cut};
}

void zookeeper_proxy::refuse_next(operation what, std::int32_t code, int times)
{
    std::scoped_lock const guard{impl_->mutex_};
    impl_->fault_ = impl::fault{what, impl::effect::refuse, code, times};
}

void zookeeper_proxy::silence() { impl_->silent_ = true; }
void zookeeper_proxy::cut() { impl_->cut_ = true; }
void zookeeper_proxy::pass() { impl_->silent_ = impl_->cut_ = false; }

void zookeeper_proxy::heal()
{
    pass();
    std::scoped_lock const guard{impl_->mutex_};
    impl_->fault_.reset();
}

int zookeeper_proxy::struck() const
{
    std::scoped_lock const guard{impl_->mutex_};
    return impl_->struck_;
}

int zookeeper_proxy::seen(operation what) const
{
    std::scoped_lock const guard{impl_->mutex_};
    auto const found = impl_->seen_.find(what);
    return found == impl_->seen_.end() ? 0 : found->second;
}

}  // namespace holdfast::test
