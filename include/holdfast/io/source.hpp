// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>

namespace holdfast::inline HOLDFAST_ABI::io {

/// A descriptor that a reactor polls.
class source {
public:
    /// Returns: the descriptor; negative while there is none.
    [[nodiscard]] virtual int descriptor() const noexcept = 0;

    /// Returns: the events of `poll(2)` that are wanted.
    [[nodiscard]] virtual short interest() const noexcept = 0;

    /// Effects: appends to its outlet what it kept back until now, so that more could go along; see
    /// `reactor::send_later`. Called with the reactor's lock held.
    virtual void compose(boot_clock::time_point /*now*/) noexcept {}

    /// Effects: sends what is to be sent, also what another thread has taken up to send. Called with the reactor's lock
    /// held, like the next one.
    virtual void flush() noexcept {}

    virtual void on_ready(short events, boot_clock::time_point now) = 0;

protected:
    ~source() = default;
};

}  // namespace holdfast::io
