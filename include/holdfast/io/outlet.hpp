// SPDX-License-Identifier: MIT
#pragma once

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

namespace holdfast::io {

/// Effects: has a TCP socket send at once, and notice within about a minute that an idle connection is gone: what forwards it may have forgotten
/// it without a word.
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

/// What is to be sent on a socket, and the socket. Bytes are appended under the reactor's lock and flushed without it, so that a thread in
/// `send` keeps nobody waiting; what others append meanwhile goes out with its next `send`. The descriptor is closed when the last one
/// has let go of it.
class outlet {
public:
    explicit outlet(int descriptor) noexcept : descriptor_{descriptor} {}
    outlet(outlet const&) = delete;
    outlet& operator=(outlet const&) = delete;
    ~outlet() { ::close(descriptor_); }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

    /// Throws: `std::bad_alloc`, in which case nothing is appended.
    void append(std::string_view bytes)
    {
        if (origin_.in_child()) return;  // what is unsent is the parent's, and so may be the mutex
        std::scoped_lock guard{mutex_};
        unsent_.append(bytes);
    }

    /// Effects: sends what there is, as far as the socket takes it; leaves it to the thread that does so already, or that waits until the
    /// socket takes more. An error shows when the socket is read next.
    /// Returns: whether the socket takes no more for now.
    bool flush() noexcept { return !origin_.in_child() && (blocked_ || flush_again()); }

    /// Effects: the same, where the socket took no more and may now.
    bool flush_again() noexcept
    {
        if (origin_.in_child()) return false;
        std::unique_lock guard{mutex_};
        if (flushing_) return false;
        flushing_ = true;
        blocked_ = false;
        while (!unsent_.empty() && !blocked_) {
            sending_.swap(unsent_);
            guard.unlock();
            auto const sent = send_all();
            guard.lock();
            if (sent < sending_.size()) keep(sent);
            sending_.clear();
        }
        flushing_ = false;
        return blocked_;
    }

    /// Effects: ends the connection for both sides; whoever reads it finds out.
    void cut() noexcept
    {
        if (!origin_.in_child()) ::shutdown(descriptor_, SHUT_RDWR);
    }

    /// Effects: has what was not delivered thrown away, on this side of the network, and nothing more sent, whoever else has the descriptor: a
    /// thread that sends, a child of fork(). The system would go on trying to deliver it for minutes.
    void abandon() noexcept
    {
        if (origin_.in_child()) return;
        ::sockaddr nobody{};
        nobody.sa_family = AF_UNSPEC;
        // connect(2): dissolves the association; of TCP by a reset. A Unix socket refuses that, and has nothing under way. The system call itself,
        // as ThreadSanitizer takes every `connect()` for the making of a new connection, and a `send()` at the same time for a race with it.
        if (::syscall(SYS_connect, descriptor_, &nobody, sizeof nobody) != 0) ::shutdown(descriptor_, SHUT_RDWR);
    }

    /// Returns: whether the socket took no more when it was flushed last.
    [[nodiscard]] bool blocked() const noexcept { return blocked_; }

private:
    [[nodiscard]] std::size_t send_all() const noexcept
    {
        std::size_t done = 0;
        while (done < sending_.size()) {
            auto const n = ::send(descriptor_, sending_.data() + done, sending_.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return errno == EAGAIN ? done : sending_.size();
            done += static_cast<std::size_t>(n);
        }
        return done;
    }

    /// Effects: what follows the first `sent` bytes goes out next. No memory for that is as good as a broken socket.
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
    std::string sending_;  // of the thread that flushes
    bool flushing_ = false;
    std::atomic<bool> blocked_{false};
};

}  // namespace holdfast::io
