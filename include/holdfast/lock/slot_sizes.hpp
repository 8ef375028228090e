// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/semaphore_slot.hpp>
#include <holdfast/core/slot_source.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/slot_batch.hpp>
#include <holdfast/lock/slot_set.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The slots of a semaphore whose number of permits may change: one `slot_set` for each number. Only the slots of the
/// number in use are taken. Those of a number before live as long as one of them is held.
///
/// | event | those that wait |
/// |---|---|
/// | the number is changed | wait for the slots of the new number, by the same deadline |
/// | a slot is refused for the number, while it is changed | go on when that has ended; a single attempt is over |
/// | a slot is refused for the number, otherwise | are told |
class slot_sizes {
public:
    /// Makes the slots of a semaphore.
    using maker = std::function<std::unique_ptr<slot_source>(semaphore_slot const&)>;

    /// The slots of one number.
    class sized {
    public:
        sized(std::string_view name, std::ptrdiff_t max, maker const& make)
            : source{checked(name, max, make)},
              slots{name, max, [this, slot = std::size_t{0}](auto const&) mutable { return source->make_slot(slot++); }}
        {
        }

        std::unique_ptr<slot_source> source;  ///< null after the end of the semaphore
        slot_set slots;
        std::stop_source replaced;  ///< stopped when another number is in use

    private:
        [[nodiscard]] static std::unique_ptr<slot_source> checked(std::string_view name, std::ptrdiff_t max,
                                                                  maker const& make)
        {
            slot_set::check(name, max);
            return make({name, static_cast<std::size_t>(max)});
        }
    };
    using shared_slots = std::shared_ptr<sized>;

    /// Throws: `error` (`misconfigured`), and what `make` throws.
    slot_sizes(std::string_view name, std::ptrdiff_t max, maker make)
        : name_{name}, make_{std::move(make)}, current_{std::make_shared<sized>(name, max, make_)}, largest_{current_}
    {
    }

    [[nodiscard]] std::string const& name() const noexcept { return name_; }

    /// Returns: the slots of the number in use.
    [[nodiscard]] shared_slots current() const
    {
        std::scoped_lock guard{mutex_};
        return current_;
    }

    /// Returns: the number in use, as this object says.
    [[nodiscard]] std::ptrdiff_t max() const { return static_cast<std::ptrdiff_t>(current()->slots.size()); }

    /// Returns: how many slots are held, by any client, of the greatest number that this object has had.
    [[nodiscard]] std::ptrdiff_t held() const
    {
        auto const all = largest();
        return static_cast<std::ptrdiff_t>(all->source->held());
    }

    /// Effects: as `semaphore::resize`.
    void resize(std::ptrdiff_t max)
    {
        std::scoped_lock one_at_a_time{resizing_};
        auto next = current();
        if (static_cast<std::size_t>(max) != next->slots.size()) next = std::make_shared<sized>(name(), max, make_);
        {
            std::scoped_lock guard{mutex_};
            std::erase_if(former_, [](auto const& one) { return one.expired(); });
            former_.reserve(former_.size() + 1);
            changing_ = true;
        }
        try {
            next->source->resize();
        } catch (...) {
            end_change(nullptr);
            throw;
        }
        end_change(std::move(next));
    }

    /// Effects: gives back all slots that are held. What waits, and what is taken from now on, is cancelled.
    void close() noexcept
    {
        for (auto const& one : former_)
            if (auto const of = one.lock()) close(*of);
        close(*largest_);
        close(*current_);
        make_ = nullptr;  // which may own the client
    }

    /// Effects: takes `n` slots, as `slot_batch::take`, of the number in use. Returns: which; none if the time passed,
    /// or after a stop.
    /// Throws: as `slot_batch::take`, and `error` (`misconfigured`) if `n` is not 1 to that number.
    [[nodiscard]] held_slots take(std::ptrdiff_t n, lock_object& turn, patience const& p, std::stop_token const& stop)
    {
        for (;;) {
            auto const in = current();
            in->slots.check_number(n);
            held_slots all(static_cast<std::size_t>(n));
            std::stop_source over;
            auto const end = [&over]() noexcept { over.request_stop(); };
            std::stop_callback const on_stop{stop, end};
            std::stop_callback const on_change{in->replaced.get_token(), end};
            try {
                auto const got = slot_batch{in->slots, turn}.take(all.size(), p, over.get_token());
                if (got.empty() && !stop.stop_requested() && in->replaced.stop_requested()) continue;
                if (got.empty()) return {};
                std::transform(got.begin(), got.end(), all.begin(), [&](std::size_t slot) {
                    return held_slot{lock_of(in, slot), slot};
                });
                return all;
            } catch (error const& e) {
                if (e.code() != errc::misconfigured) throw;
                auto const seen = wait_for_change(in, p, stop);
                if (seen == change::none) throw;
                if (seen == change::not_awaited) return {};
            }
        }
    }

    /// Returns: the lock of a slot, with which all slots of that number live.
    [[nodiscard]] static std::shared_ptr<lock_object> lock_of(shared_slots const& in, std::size_t slot)
    {
        return {in, in->slots.at(slot).get()};
    }

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
    static void close(sized& one) noexcept
    {
        one.slots.close();
        one.source.reset();
    }

    [[nodiscard]] shared_slots largest() const
    {
        std::scoped_lock guard{mutex_};
        return largest_;
    }

    /// Of the number of permits: whether it has changed, and whether the caller waited for that.
    enum class change : std::uint8_t { none, ended, not_awaited };

    /// Effects: as `after_change`, and waits for it, as long as `p` and `stop` allow.
    [[nodiscard]] change wait_for_change(shared_slots const& in, patience const& p, std::stop_token const& stop)
    {
        auto const here = std::make_shared<parker>();
        auto const ended = std::make_shared<std::atomic<bool>>(false);
        if (!after_change(in, [here, ended] {
                *ended = true;
                here->unpark();
            }))
            return change::none;
        std::stop_callback const on_stop{stop, [&]() noexcept { here->unpark(); }};
        while (!*ended && !p.once && !stop.stop_requested() && boot_clock::now() < p.deadline)
            static_cast<void>(here->park_until(p.deadline));
        return *ended ? change::ended : change::not_awaited;
    }

    /// Effects: the slots of `next` are in use, if it is not null; those that waited for the change go on.
    void end_change(shared_slots next) noexcept
    {
        std::vector<std::function<void()>> waiting;
        {
            std::scoped_lock guard{mutex_};
            changing_ = false;
            waiting.swap(after_change_);
            if (next) std::swap(next, current_);
            if (current_->slots.size() > largest_->slots.size()) largest_ = current_;
            if (next && next != current_) former_.emplace_back(next);
        }
        if (next && next != current()) next->replaced.request_stop();
        for (auto const& go_on : waiting) go_on();
    }

    std::string const name_;
    maker make_;
    std::mutex resizing_;
    mutable std::mutex mutex_;
    shared_slots current_;
    shared_slots largest_;                      // of those that were in use
    std::vector<std::weak_ptr<sized>> former_;  // of which slots may be held
    bool changing_ = false;
    std::vector<std::function<void()>> after_change_;
};

}  // namespace holdfast::detail
