// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/report.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The shared holds of one `shared_mutex`: each has a lease of its own, so an object that takes one, which is kept for
/// the next. There are as many as were ever held or asked for at once.
///
/// | an object is | left by |
/// |---|---|
/// | idle | `take` → in use |
/// | in use: it is asked for, held by a guard, or given back | `keep`, `keep_again` → kept; `put_back` → idle |
/// | kept, by `lock_shared` | `let_go` → in use |
class shared_holds {
public:
    using maker = std::function<std::unique_ptr<lock_object>()>;
    using object = std::shared_ptr<lock_object>;

    /// Effects: makes the first object. Throws: what `make` throws.
    explicit shared_holds(maker make) : make_{std::move(make)} { put_back(take()); }

    shared_holds(shared_holds const&) = delete;
    shared_holds& operator=(shared_holds const&) = delete;
    ~shared_holds() = default;

    /// Effects: gives back all that are held, together: it waits for the answer to the last one only.
    void close() noexcept
    {
        if (origin_.in_child()) return;
        std::vector<entry> all;
        {
            std::scoped_lock guard{mutex_};
            all.swap(entries_);
        }
        lock_object* last = nullptr;
        for (auto const& one : all) {
            if (one.what->lease() == lease{}) continue;
            if (last) last->give_back(last->lease());
            last = one.what.get();
        }
        for (auto const& one : all) one.what->close();
    }

    /// Effects: takes a shared hold, as long as `p` allows and `stop` is not requested. Returns: its object, which is
    /// in use; null if the time passed while the lock was held exclusively, or after a stop. Throws: what
    /// `mutex::lock` throws.
    [[nodiscard]] object lock(patience const& p, std::stop_token const& stop)
    {
        if (origin_.in_child()) throw made_before_fork(entries_.front().what->name());
        auto one = take();
        try {
            if (one->lock(p, stop)) return one;
        } catch (...) {
            put_back(one);
            throw;
        }
        put_back(one);
        return nullptr;
    }

    /// Effects: the hold of `one` is kept, as one of this thread.
    void keep(object const& one) noexcept
    {
        std::scoped_lock guard{mutex_};
        if (auto* const found = find(one)) {
            found->taken = ++taken_;
            found->by = std::this_thread::get_id();
        }
    }

    /// Returns: the hold of those kept that this thread took last; if it has none, the oldest; null if none is kept.
    /// It stays kept.
    [[nodiscard]] object current() noexcept
    {
        if (origin_.in_child()) return nullptr;  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        auto const* const found = choose();
        return found ? found->what : nullptr;
    }

    /// Effects: the same hold is in use, and to be given back by the caller. Returns: its object; null if none is kept.
    [[nodiscard]] object let_go() noexcept
    {
        if (origin_.in_child()) return nullptr;
        std::scoped_lock guard{mutex_};
        auto* const found = choose();
        if (!found) return nullptr;
        found->before = std::exchange(found->taken, 0);
        return found->what;
    }

    /// Effects: the hold of `one`, which `let_go` returned, is kept as before.
    void keep_again(object const& one) noexcept
    {
        std::scoped_lock guard{mutex_};
        if (auto* const found = find(one)) found->taken = found->before;
    }

    /// Effects: `one`, which is in use and holds nothing now, may be taken again.
    void put_back(object const& one) noexcept
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        if (auto* const found = find(one)) found->idle = true;
    }

private:
    struct entry {
        object what;
        bool idle = false;
        std::uint64_t taken = 0;  ///< its number among those that were kept; 0: it is not
        std::uint64_t before = 0;  ///< the same, before it was let go
        std::thread::id by{};
    };

    [[nodiscard]] object take()
    {
        {
            std::scoped_lock guard{mutex_};
            for (auto& one : entries_)
                if (std::exchange(one.idle, false)) return one.what;
        }
        object made = make_();
        std::scoped_lock guard{mutex_};
        entries_.push_back({.what = made});
        return made;
    }

    [[nodiscard]] entry* find(object const& what) noexcept
    {
        for (auto& one : entries_)
            if (one.what == what) return &one;
        return nullptr;
    }

    [[nodiscard]] entry* choose() noexcept
    {
        entry* mine = nullptr;
        entry* oldest = nullptr;
        for (auto& one : entries_) {
            if (one.taken == 0) continue;
            if (one.by == std::this_thread::get_id() && (!mine || one.taken > mine->taken)) mine = &one;
            if (!oldest || one.taken < oldest->taken) oldest = &one;
        }
        return mine ? mine : oldest;
    }

    maker const make_;
    std::mutex mutex_;
    std::vector<entry> entries_;
    std::uint64_t taken_ = 0;
    fork_guard const origin_;
};

}  // namespace holdfast::detail
