// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/fork_guard.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::io {

/// Effects: makes a TCP socket send at once, and notice within about a minute that an idle connection is gone: a router
/// may have dropped it without notice.
inline void set_tcp_options(int descriptor) noexcept
{
    auto const set = [&](int name, int value) { ::setsockopt(descriptor, IPPROTO_TCP, name, &value, sizeof value); };
    int const on = 1;
    ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    set(TCP_NODELAY, 1);
    set(TCP_KEEPIDLE, 30);   // seconds
    set(TCP_KEEPINTVL, 10);  // seconds
    set(TCP_KEEPCNT, 3);
}

/// Returns: whether one of `events` is there now, or an error.
[[nodiscard]] inline bool is_ready_for(int descriptor, short events) noexcept
{
    pollfd one{.fd = descriptor, .events = events, .revents = 0};
    return ::poll(&one, 1, 0) > 0;
}

/// A socket, and what is to be sent on it. Bytes are appended under the reactor's lock and flushed without it, so that
/// a thread in `send` keeps no other thread waiting. Who wants to flush meanwhile leaves that to its next `send`; what
/// is appended without that waits for more. The descriptor is closed when the last owner drops the outlet.
class outlet {
public:
    explicit outlet(int descriptor) : descriptor_{descriptor} {}
    outlet(outlet const&) = delete;
    outlet& operator=(outlet const&) = delete;
    ~outlet() { ::close(descriptor_); }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

    /// Throws: `std::bad_alloc`, in which case nothing is appended.
    void append(std::string_view bytes)
    {
        if (origin_.in_child()) return;  // the unsent bytes are the parent's; its threads may have the mutex
        std::scoped_lock guard{mutex_};
        unsent_.append(bytes);
    }

    /// Effects: sends the appended bytes as far as the socket takes them. Leaves them to another thread if that sends
    /// already, or waits until the socket takes more. Any other error breaks the connection, which shows when the
    /// socket is read next: bytes were lost, and the answers to what is sent after them would be taken for others.
    /// Returns: whether the socket takes no more for now.
    bool flush() noexcept { return !origin_.in_child() && (blocked_ || flush_again()); }

    /// Effects: the same, if the socket took no more before and may now.
    bool flush_again() noexcept
    {
        if (origin_.in_child()) return false;
        std::unique_lock guard{mutex_};
        again_ = true;
        std::unique_lock const sends{sends_, std::try_to_lock};
        return sends && send_unsent(guard);
    }

    /// Effects: the same; if another thread sends already, waits until it has, instead of leaving it to that.
    void flush_all() noexcept
    {
        if (origin_.in_child()) return;
        std::unique_lock guard{mutex_, std::defer_lock};
        std::scoped_lock const sends{sends_};
        guard.lock();
        again_ = true;
        static_cast<void>(send_unsent(guard));
    }

    /// Effects: ends the connection for both sides; the next read shows it.
    void cut() noexcept
    {
        if (!origin_.in_child()) ::shutdown(descriptor_, SHUT_RDWR);
    }

    /// Effects: discards what was not delivered, on this side of the network, and sends nothing more, even if another
    /// thread is sending or a child of fork() has the descriptor. Otherwise the system would try to deliver it for
    /// minutes.
    void abandon() noexcept
    {
        if (origin_.in_child()) return;
        ::sockaddr nobody{};
        nobody.sa_family = AF_UNSPEC;
        // connect(2): dissolves the association; for TCP by a reset. A Unix socket refuses that, and has nothing under
        // way. The system call itself, because ThreadSanitizer takes every `connect()` for a new connection, and a
        // `send()` at the same time for a race with it.
        if (::syscall(SYS_connect, descriptor_, &nobody, sizeof nobody) != 0) ::shutdown(descriptor_, SHUT_RDWR);
    }

    /// Returns: whether the socket took no more when it was flushed last.
    [[nodiscard]] bool blocked() const noexcept { return blocked_; }

private:
    /// Effects: see `flush_again`. Requires: the caller holds both mutexes, and gives up `sends_` first, so that no
    /// thread leaves its bytes to one that sends no more.
    [[nodiscard]] bool send_unsent(std::unique_lock<std::mutex>& guard) noexcept
    {
        blocked_ = false;
        while (std::exchange(again_, false) && !unsent_.empty() && !blocked_) {
            sending_.swap(unsent_);
            guard.unlock();
            auto const sent = send_all();
            guard.lock();
            if (sent < sending_.size()) keep(sent);
            sending_.clear();
        }
        return blocked_;
    }

    /// Effects: sends what it can; after an error, breaks the connection. Returns: how much of it is done with.
    [[nodiscard]] std::size_t send_all() const noexcept
    {
        std::size_t done = 0;
        while (done < sending_.size()) {
            auto const n =
                ::send(descriptor_, sending_.data() + done, sending_.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && errno == EAGAIN) return done;
            if (n < 0) break;
            done += static_cast<std::size_t>(n);
        }
        if (done < sending_.size()) ::shutdown(descriptor_, SHUT_RDWR);
        return sending_.size();
    }

    /// Effects: keeps what follows the first `sent` bytes for the next send. If there is no memory for that, breaks the
    /// connection.
    void keep(std::size_t sent) noexcept
    try {
        unsent_.insert(0, sending_, sent);
        blocked_ = true;
    } catch (std::bad_alloc const&) {
        unsent_.clear();
        ::shutdown(descriptor_, SHUT_RDWR);
    }

    detail::fork_guard const origin_;
    int const descriptor_;
    std::mutex mutex_;
    std::string unsent_;
    std::mutex sends_;     // held by the thread that flushes
    std::string sending_;  // its bytes
    bool again_ = false;   // another thread wants to flush while it does
    std::atomic<bool> blocked_{false};
};

}  // namespace holdfast::io
