// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/parker.hpp>

namespace holdfast::inline HOLDFAST_ABI::io {

/// A thread that waits while another one leads a reactor. It lives on the stack of the waiting thread.
struct follower {
    detail::parker* who = nullptr;
    follower* previous = nullptr;
    follower* next = nullptr;
};

}  // namespace holdfast::io
