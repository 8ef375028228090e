// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/memory.hpp>

namespace holdfast::test {

/// A lock in memory, and another client's lock of the same name.
template <class Mutex = memory::mutex>
struct orders {
    memory::store here;
    memory::store there = here.another_client();
    Mutex m{here, "orders"};
    memory::mutex rival{there, "orders"};

    /// Returns: whether nobody has the lock.
    [[nodiscard]] bool free()
    {
        bool const got = rival.try_lock();
        if (got) rival.unlock();
        return got;
    }
};

}  // namespace holdfast::test
