// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/timer_queue.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A function that is called once. Small ones are stored in place: a world has some for every message.
// NOLINTBEGIN(cppcoreguidelines-pro-type-member-init): the place is for whatever is put there, and nothing reads it before
class task {
public:
    template <std::invocable F>
        requires(!std::same_as<std::remove_cvref_t<F>, task>)
    task(
        F&& f)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload): any function is one, but for a task
    {
        using function = std::remove_cvref_t<F>;
        if constexpr (fits<function>) {
            new (place_.data()) function{std::forward<F>(f)};
            use_ = &use_here<function>;
        } else {
            new (place_.data()) function*{new function{std::forward<F>(f)}};
            use_ = &use_elsewhere<function>;
        }
    }

    task() = default;
    task(task&& other) noexcept { take(other); }
    task& operator=(task&& other) noexcept
    {
        if (this == &other) return *this;
        drop();
        take(other);
        return *this;
    }
    ~task() { drop(); }

    void operator()() { use_(what::call, place_.data(), nullptr); }

private:
    enum class what : std::uint8_t { call, move, drop };
    using user = void (*)(what, std::byte*, std::byte*);

    static constexpr std::size_t room = 104;
    template <class F>
    // NOLINTNEXTLINE(misc-redundant-expression): not for every F
    static constexpr bool fits =
        sizeof(F) <= room && alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;

    template <class F>
    static void use_here(what w, std::byte* place, std::byte* to)
    {
        auto& f = *std::launder(reinterpret_cast<F*>(place));
        if (w == what::call) return static_cast<void>(f());
        if (w == what::move) new (to) F{std::move(f)};
        f.~F();  // NOLINT(bugprone-use-after-move): what was moved from still has to be destroyed
    }

    template <class F>
    static void use_elsewhere(what w, std::byte* place, std::byte* to)
    {
        auto* const f = *std::launder(reinterpret_cast<F**>(place));
        if (w == what::call) return static_cast<void>((*f)());
        if (w == what::move)
            new (to) F*{f};
        else
            delete f;
    }

    void take(task& other) noexcept
    {
        use_ = std::exchange(other.use_, nullptr);
        if (use_) use_(what::move, other.place_.data(), place_.data());
    }

    void drop() noexcept
    {
        if (auto* const use = std::exchange(use_, nullptr)) use(what::drop, place_.data(), nullptr);
    }

    user use_ = nullptr;
    alignas(std::max_align_t) std::array<std::byte, room> place_;
};
// NOLINTEND(cppcoreguidelines-pro-type-member-init)

/// What will happen, in the order of the times; what is due together, in the order in which it was asked for.
class agenda {
public:
    [[nodiscard]] bool empty() const noexcept { return queue_.first() == nullptr; }
    [[nodiscard]] boot_clock::time_point next() const noexcept { return queue_.next(); }

    void add(boot_clock::time_point when, task f)
    {
        if (free_.empty()) free_.push_back(&entries_.emplace_back());
        auto& one = *free_.back();
        free_.pop_back();
        one.what = std::move(f);
        queue_.add(one, when);
    }

    /// Effects: removes the next task. Returns: it.
    [[nodiscard]] task take()
    {
        auto& one = static_cast<entry&>(*queue_.first());
        queue_.remove(one);
        free_.push_back(&one);
        return std::move(one.what);
    }

private:
    struct entry : holdfast::detail::timed {
        task what;
    };

    holdfast::detail::timer_queue queue_;
    std::deque<entry> entries_;
    std::vector<entry*> free_;
};

}  // namespace holdfast::sim
