// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/parker.hpp>

#include <mutex>
#include <utility>

namespace holdfast::benchmark {

/// A first-come, first-served mutex of one process with nothing behind it: a waiter sleeps in a place of its own, and
/// whoever unlocks hands the lock to the one that came first. What no lock with such a queue can be faster than.
class fair_mutex {
public:
    void lock()
    {
        place me;
        {
            std::scoped_lock guard{mutex_};
            if (!std::exchange(locked_, true)) return;
            *last_ = &me;
            last_ = &me.next;
        }
        while (me.bed.park_until(boot_clock::time_point::max()) == 0) {
        }
    }

    void unlock()
    {
        std::unique_lock guard{mutex_};
        auto* const next = first_;
        if (!next) {
            locked_ = false;
            return;
        }
        first_ = next->next;
        if (!first_) last_ = &first_;
        guard.unlock();
        next->bed.unpark();
    }

private:
    struct place {
        place* next = nullptr;
        detail::parker bed;
    };

    std::mutex mutex_;
    bool locked_ = false;
    place* first_ = nullptr;
    place** last_ = &first_;
};

}  // namespace holdfast::benchmark
