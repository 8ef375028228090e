// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace holdfast::test {

/// What is still to be done to one socket of a proxied connection, each step at its time and in order.
class outlet {
public:
    using time_point = std::chrono::steady_clock::time_point;

    enum class action {
        send,    ///< the bytes
        finish,  ///< no more bytes will come: FIN
        reset,   ///< the whole connection: RST
        refuse,  ///< every connection: RST, and no new ones
        silence  ///< the whole connection: whatever comes from now on is lost
    };

    struct step {
        action what = action::send;
        std::string bytes = {};
        time_point due = {};
        std::uint64_t gate = 0;  ///< waits until this gate is open, too, and so do those behind it
    };

    enum class outcome { waiting, full, broken, finish, reset, refuse, silence };

    /// Sends a byte at a time, this far apart; at once when zero.
    using pace = std::chrono::microseconds;

    void push(step next) { steps_.push_back(std::move(next)); }

    /// Effects: does what is due.
    /// Returns: `full` when the socket takes no more for now, `broken` when it never will, what to do
    /// to the whole connection when such a step is reached, else `waiting`.
    outcome advance(int fd, std::uint64_t open_gate, pace trickle);

    /// Returns: when `advance` has something to do.
    [[nodiscard]] std::optional<time_point> due(std::uint64_t open_gate) const;

private:
    std::deque<step> steps_;
    time_point next_byte_{};
};

/// Effects: RST, although forked children may have a copy of the descriptor: SO_LINGER would wait
/// for the last of them to close it.
void reset_connection(int fd);

}  // namespace holdfast::test
