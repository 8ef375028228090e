// SPDX-License-Identifier: MIT
#include "outlet.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace holdfast::test {

outlet::outcome outlet::advance(int fd, std::uint64_t open_gate, pace trickle)
{
    for (;;) {
        auto const when = due(open_gate);
        if (!when || *when > std::chrono::steady_clock::now()) return outcome::waiting;
        step& front = steps_.front();
        if (front.what != action::send) {
            auto const what = front.what;
            steps_.pop_front();
            switch (what) {
            case action::finish: return outcome::finish;
            case action::reset: return outcome::reset;
            case action::refuse: return outcome::refuse;
            default: return outcome::silence;
            }
        }
        auto const wanted = trickle > pace::zero() ? std::min<std::size_t>(1, front.bytes.size()) : front.bytes.size();
        auto const sent = ::send(fd, front.bytes.data(), wanted, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno == EAGAIN ? outcome::full : outcome::broken;
        next_byte_ = std::chrono::steady_clock::now() + trickle;
        front.bytes.erase(0, static_cast<std::size_t>(sent));
        if (front.bytes.empty()) steps_.pop_front();
    }
}

std::optional<outlet::time_point> outlet::due(std::uint64_t open_gate) const
{
    if (steps_.empty() || steps_.front().gate > open_gate) return std::nullopt;
    return std::max(steps_.front().due, next_byte_);
}

void reset_connection(int fd)
{
    ::sockaddr const nobody{AF_UNSPEC, {}};
    ::connect(fd, &nobody, sizeof nobody);
}

}  // namespace holdfast::test
