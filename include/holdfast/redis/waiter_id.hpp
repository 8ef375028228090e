// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/number.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Who waits for a lock, the same for the whole of one wait.
struct waiter_id {
    std::uint64_t inbox = 0;   ///< of the waiter's client, which listens to the channel `holdfast:wake:<inbox>`
    std::uint64_t number = 0;  ///< among those of the inbox; 0: no waiter
    std::chrono::milliseconds reserve = shortest_reservation;  ///< how long the lock is kept when it is called

    static constexpr std::chrono::milliseconds shortest_reservation{50};
    static constexpr std::chrono::milliseconds longest_reservation{1000};

    [[nodiscard]] explicit operator bool() const noexcept { return number != 0; }
    [[nodiscard]] friend bool operator==(waiter_id const&, waiter_id const&) noexcept = default;
};

/// A waiter as the servers know it: the inbox as 16 hexadecimal digits, the reservation in ms as 4, and the number.
class waiter_text {
public:
    explicit waiter_text(waiter_id const& w) noexcept
    {
        put(w.inbox, inbox_digits);
        put(static_cast<std::uint64_t>(w.reserve.count()), reserve_digits);
        end_ = std::to_chars(end_, text_.data() + text_.size(), w.number).ptr;
    }
    waiter_text(waiter_text const&) = delete;
    waiter_text& operator=(waiter_text const&) = delete;

    [[nodiscard]] std::string_view view() const noexcept
    {
        return {text_.data(), static_cast<std::size_t>(end_ - text_.data())};
    }
    [[nodiscard]] std::string_view inbox() const noexcept { return view().substr(0, inbox_digits); }

    /// Returns: the waiter of `inbox` that `said`, a text without the inbox, means; none if it means none.
    [[nodiscard]] static waiter_id read(std::uint64_t inbox, std::string_view said) noexcept
    {
        waiter_id w{.inbox = inbox};
        if (said.size() <= reserve_digits) return w;
        auto const reserve = holdfast::detail::number_in<unsigned>(said.substr(0, reserve_digits), 16);
        auto const number = holdfast::detail::number_in<std::uint64_t>(said.substr(reserve_digits));
        if (!reserve || !number) return w;
        w.reserve = std::chrono::milliseconds{*reserve};
        w.number = *number;
        return w;
    }

private:
    static constexpr std::size_t inbox_digits = 16;
    static constexpr std::size_t reserve_digits = 4;

    void put(std::uint64_t value, std::size_t digits) noexcept
    {
        while (digits-- > 0) *end_++ = "0123456789abcdef"[(value >> (4 * digits)) & 15U];
    }

    std::array<char, 40> text_{};
    char* end_ = text_.data();
};

}  // namespace holdfast::redis
