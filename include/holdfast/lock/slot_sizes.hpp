// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/slot_source.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/all_but_last.hpp>
#include <holdfast/lock/report.hpp>
#include <holdfast/lock/slot_set.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The slots of a semaphore whose number of permits may change: one `slot_set` for each number. Only the slots of the
/// number in use are taken. Those of a number before live as long as one of them is held.
class slot_sizes {
public:
    using shared_slots = std::shared_ptr<slot_set>;

    /// Throws: `error` (`misconfigured`), and what `make` throws, which is kept for `resize`.
    slot_sizes(std::string_view name, std::ptrdiff_t max, slot_set::maker make)
        : name_{name},
          make_{std::move(make)},
          max_{max},
          current_{std::make_shared<slot_set>(name, max, make_)},
          largest_{current_},
          turn_{current_->source().make_turn()}
    {
    }

    [[nodiscard]] std::string const& name() const noexcept { return name_; }

    /// Effects: none. Throws: `error` in a child of `fork`.
    void check_process() const
    {
        if (in_child()) throw made_before_fork(name_);
    }
    /// Returns: whether this is a child of `fork`.
    [[nodiscard]] bool in_child() const noexcept { return origin_.in_child(); }

    /// Returns: the slots of the number in use. Throws: as `check_process`.
    [[nodiscard]] shared_slots current() const
    {
        check_process();  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        return current_;
    }

    /// Returns: those of which `n` permits are to be taken. Throws: `error` (`misconfigured`) if `n` is not 1 to the
    /// number in use.
    [[nodiscard]] shared_slots current_for(std::ptrdiff_t n) const
    {
        auto in = current();
        auto const most = static_cast<std::ptrdiff_t>(in->size());
        if (n < 1 || n > most)
            throw error_of(name_, {make_error_code(errc::misconfigured),
                                   std::to_string(n) + " permits at once; it has " + std::to_string(most)});
        return in;
    }

    /// Returns: the lock of a slot, with which all slots of that number live.
    [[nodiscard]] static std::shared_ptr<lock_object> lock_of(shared_slots const& in, std::size_t slot)
    {
        return {in, in->at(slot).get()};
    }

    /// Returns: the lock of the caller that collects several permits.
    [[nodiscard]] lock_object& turn() const noexcept { return *turn_; }

    /// Returns: the number in use, as this object says.
    [[nodiscard]] std::ptrdiff_t max() const noexcept { return max_.load(std::memory_order_relaxed); }

    /// Returns: how many slots are held, by any client, of the greatest number that this object has had. Throws: as
    /// `check_process`, and what the store throws.
    [[nodiscard]] std::ptrdiff_t held() const { return static_cast<std::ptrdiff_t>(largest()->source().held()); }

    /// Effects: as `semaphore::resize`.
    void resize(std::ptrdiff_t max)
    {
        check_process();
        std::unique_lock one_at_a_time{resizing_};
        auto next = current();
        if (static_cast<std::size_t>(max) != next->size()) next = std::make_shared<slot_set>(name(), max, make_);
        {
            std::scoped_lock guard{mutex_};
            std::erase_if(former_, [](auto const& one) { return one.expired(); });
            former_.reserve(former_.size() + 1);
            changing_ = true;
        }
        try {
            next->source().resize();
        } catch (...) {
            end_change(std::move(one_at_a_time), nullptr);
            throw;
        }
        end_change(std::move(one_at_a_time), std::move(next));
    }

    /// Effects: gives back all slots that are held, of every number, together. What waits, and what is taken from now
    /// on, is cancelled, also if it is granted one of these.
    void close() noexcept
    {
        if (!in_child()) {
            closed_ = true;
            current_->out_of_use.request_stop();
        }
        all_but_last together;
        for_each_set([&](slot_set& one) { one.add_to(together); });
        together.add(turn_);
        for_each_set([](slot_set& one) { one.close(); });
        turn_->close();
        make_ = nullptr;  // which may own the client
    }
    [[nodiscard]] bool closed() const noexcept { return closed_; }

    /// Effects: calls `f` when slots of another number than those of `in` can be asked for: at once, or when the change
    /// that is under way has ended. Returns: whether it does; otherwise `in` is in use. Throws: `std::bad_alloc`.
    [[nodiscard]] bool after_change(shared_slots const& in, std::function<void()> f)
    {
        {
            std::scoped_lock guard{mutex_};
            if (changing_) {
                after_change_.push_back(std::move(f));
                return true;
            }
            if (current_ == in) return false;
        }
        f();
        return true;
    }

private:
    template <class F>
    void for_each_set(F const& f) noexcept
    {
        for (auto const& one : former_)
            if (auto const of = one.lock()) f(*of);
        f(*largest_);
        f(*current_);
    }

    [[nodiscard]] shared_slots largest() const
    {
        check_process();
        std::scoped_lock guard{mutex_};
        return largest_;
    }

    /// Effects: the slots of `next` are in use, if it is not null; those that waited for the change go on, unlocked, as
    /// what they tell may resize again.
    void end_change(std::unique_lock<std::mutex> one_at_a_time, shared_slots next) noexcept
    {
        std::vector<std::function<void()>> waiting;
        {
            std::scoped_lock guard{mutex_};
            changing_ = false;
            waiting.swap(after_change_);
            if (next) std::swap(next, current_);
            max_ = static_cast<std::ptrdiff_t>(current_->size());
            if (current_->size() > largest_->size()) largest_ = current_;
            if (next == current_) next = nullptr;
            if (next) former_.emplace_back(next);
        }
        one_at_a_time.unlock();
        if (next) next->out_of_use.request_stop();
        for (auto const& go_on : waiting) go_on();
    }

    fork_guard const origin_;
    std::string const name_;
    slot_set::maker make_;
    std::atomic<std::ptrdiff_t> max_;
    std::mutex resizing_;
    mutable std::mutex mutex_;
    shared_slots current_;
    shared_slots largest_;                         // of those that were in use
    std::vector<std::weak_ptr<slot_set>> former_;  // of which slots may be held
    std::shared_ptr<lock_object> const turn_;
    std::atomic<bool> closed_{false};
    bool changing_ = false;
    std::vector<std::function<void()>> after_change_;
};

}  // namespace holdfast::detail
