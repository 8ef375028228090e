// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/shared_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/all_but_last.hpp>
#include <holdfast/lock/report.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
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
///
/// An asynchronous call has an object in use as well, by a `one_hold`.
class shared_holds final : public shared_object, public std::enable_shared_from_this<shared_holds> {
public:
    using maker = std::function<std::shared_ptr<lock_object>()>;

    /// Effects: makes the first object. Throws: what `make` throws.
    explicit shared_holds(maker make) : make_{std::make_shared<maker const>(std::move(make))} { put_back(take()); }

    void close() noexcept override
    {
        if (origin_.in_child()) return;
        std::vector<entry> all;
        std::shared_ptr<maker const> gone;  // it has the client
        {
            std::scoped_lock guard{mutex_};
            all.swap(entries_);
            gone = std::move(make_);
        }
        all_but_last together;
        for (auto const& one : all) together.add(one.what);
        for (auto const& one : all) one.what->close();
    }

    [[nodiscard]] std::shared_ptr<async_object> to_lock() override
    {
        if (origin_.in_child()) throw made_before_fork(name_);
        return hold_of(take());
    }

    [[nodiscard]] std::shared_ptr<async_object> to_unlock(holdfast::lease& hold) override
    {
        if (origin_.in_child()) throw made_before_fork(name_);
        auto one = let_go();
        if (!one && closed()) throw error_of(name_, {make_error_code(errc::not_owner), "it was destroyed"});
        if (!one) return hold_of(take());  // which has nothing to give back, and says so
        hold = one->lease();
        return hold_of(one);
    }

    [[nodiscard]] object lock(patience const& p, std::stop_token const& stop) override
    {
        if (origin_.in_child()) throw made_before_fork(name_);
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

    void keep(object const& one) noexcept override { keep(one, std::this_thread::get_id()); }

    /// Effects: the hold of `one` is kept, as one of the thread `by`.
    void keep(object const& one, std::thread::id by) noexcept
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        if (auto* const found = find(one)) {
            found->taken = ++taken_;
            found->by = by;
        }
    }

    [[nodiscard]] object current() noexcept override
    {
        if (origin_.in_child()) return nullptr;  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        auto const* const found = choose();
        return found ? found->what : nullptr;
    }

    [[nodiscard]] object let_go() noexcept override
    {
        if (origin_.in_child()) return nullptr;
        std::scoped_lock guard{mutex_};
        auto* const found = choose();
        if (!found) return nullptr;
        found->before = std::exchange(found->taken, 0);
        return found->what;
    }

    void keep_again(object const& one) noexcept override
    {
        std::scoped_lock guard{mutex_};
        if (auto* const found = find(one)) found->taken = found->before;
    }

    void put_back(object const& one) noexcept override
    {
        if (origin_.in_child()) return;
        std::scoped_lock guard{mutex_};
        if (auto* const found = find(one)) found->idle = true;
    }

private:
    /// One hold, during an asynchronous call and while a guard has it.
    class one_hold final : public async_object {
    public:
        one_hold(std::shared_ptr<shared_holds> of, object one) noexcept : of_{std::move(of)}, one_{std::move(one)} {}

        /// What was not given back is kept: it could not be begun.
        ~one_hold() override
        {
            if (left_) return;
            if (one_->lease() == holdfast::lease{})
                of_->put_back(one_);
            else
                of_->keep(one_, {});
        }

        void begin_lock(patience const& p, std::stop_token stop, std::unique_ptr<async_result> told) override
        {
            one_->begin_lock(p, std::move(stop), std::move(told));
        }
        void begin_unlock(holdfast::lease const& hold, std::unique_ptr<async_result> told) override
        {
            one_->begin_unlock(hold, std::move(told));
        }
        void give_back(holdfast::lease const& hold) noexcept override { one_->give_back(hold); }
        void leave() noexcept override
        {
            left_ = true;
            of_->keep(one_, {});  // of no thread
        }
        [[nodiscard]] holdfast::lease lease() const override { return one_->lease(); }
        [[nodiscard]] bool closed() const noexcept override { return one_->closed(); }

    private:
        std::shared_ptr<shared_holds> const of_;
        object const one_;
        bool left_ = false;
    };

    /// Returns: what has the object `one`, which is in use, and ends that.
    [[nodiscard]] std::shared_ptr<async_object> hold_of(object const& one)
    try {
        return std::make_shared<one_hold>(shared_from_this(), one);
    } catch (...) {
        one->lease() == holdfast::lease{} ? put_back(one) : keep(one, {});
        throw;
    }

    struct entry {
        object what;
        bool idle = false;
        std::uint64_t taken = 0;   ///< its number among those that were kept; 0: it is not
        std::uint64_t before = 0;  ///< the same, before it was let go
        std::thread::id by{};
    };

    [[nodiscard]] object take()
    {
        std::shared_ptr<maker const> make;
        {
            std::scoped_lock guard{mutex_};
            for (auto& one : entries_)
                if (std::exchange(one.idle, false)) return one.what;
            make = make_;
        }
        if (!make) throw error_of(name_, {std::make_error_code(std::errc::operation_canceled), "it was destroyed"});
        object made = (*make)();
        std::unique_lock guard{mutex_};
        bool const too_late = !make_;
        if (!too_late) entries_.push_back({.what = made});
        if (name_.empty()) name_ = made->name();
        guard.unlock();
        if (too_late) made->close();
        return made;
    }

    [[nodiscard]] bool closed() noexcept
    {
        std::scoped_lock guard{mutex_};
        return !make_;
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

    std::shared_ptr<maker const> make_;  // null: closed
    std::string name_;
    std::mutex mutex_;
    std::vector<entry> entries_;
    std::uint64_t taken_ = 0;
    fork_guard const origin_;
};

}  // namespace holdfast::detail
