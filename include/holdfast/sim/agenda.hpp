// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast::sim {

/// A function that is called once. Small ones are kept in place: a world has some of them for every message.
// NOLINTBEGIN(cppcoreguidelines-pro-type-member-init): the place is for whatever is put there, and nothing reads it before
class task {
public:
    template <std::invocable F>
        requires(!std::same_as<std::remove_cvref_t<F>, task>)
    task(F&& f)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload): any function is one, but for a task
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
    static constexpr bool fits = sizeof(F) <= room && alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;

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

/// What will happen, in the order of the times, and of the asking for what is due together.
class agenda {
public:
    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
    [[nodiscard]] boot_clock::time_point next() const noexcept { return heap_.front().when; }

    void add(boot_clock::time_point when, task f)
    {
        std::uint32_t slot = 0;
        if (free_.empty()) {
            slot = static_cast<std::uint32_t>(tasks_.size());
            tasks_.push_back(std::move(f));
        } else {
            slot = free_.back();
            free_.pop_back();
            tasks_[slot] = std::move(f);
        }
        heap_.push_back({when, asked_++, slot});
        std::push_heap(heap_.begin(), heap_.end(), later{});
    }

    /// Returns: what is next, which is on the agenda no more.
    [[nodiscard]] task take()
    {
        std::pop_heap(heap_.begin(), heap_.end(), later{});
        auto const slot = heap_.back().slot;
        heap_.pop_back();
        free_.push_back(slot);
        return std::move(tasks_[slot]);
    }

private:
    struct entry {
        boot_clock::time_point when;
        std::uint32_t order;
        std::uint32_t slot;
    };

    struct later {
        bool operator()(entry const& a, entry const& b) const noexcept { return a.when != b.when ? a.when > b.when : a.order > b.order; }
    };

    std::uint32_t asked_ = 0;
    std::vector<entry> heap_;
    std::vector<task> tasks_;
    std::vector<std::uint32_t> free_;
};

}  // namespace holdfast::sim
