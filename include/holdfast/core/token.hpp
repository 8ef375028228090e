// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

/// Says which attempt owns a lock: 128 bits from the kernel's generator, as 32 hexadecimal digits. It is a secret of
/// its owner: a client that knows it can release the lock, so no message contains it.
class owner_token {
public:
    /// A token that owns nothing.
    constexpr owner_token() noexcept = default;

    /// Returns: the token whose bits are given.
    [[nodiscard]] static owner_token from_bits(std::uint64_t high, std::uint64_t low) noexcept
    {
        owner_token t;
        for (std::size_t i = 0; i < 16; ++i) {
            t.digits_[15 - i] = hexadecimal[(high >> (4 * i)) & 15U];
            t.digits_[31 - i] = hexadecimal[(low >> (4 * i)) & 15U];
        }
        return t;
    }

    /// Returns: a token that no other owner has, not even a process forked from this one.
    /// Throws: `error` (`misconfigured`) if the kernel gives no random bits.
    [[nodiscard]] static owner_token fresh()
    {
        std::array<std::uint64_t, 2> bits{};
        fill_random(bits.data(), sizeof bits);
        return from_bits(bits[0], bits[1]);
    }

    /// Returns: the digits.
    [[nodiscard]] std::string_view view() const noexcept { return {digits_.data(), digits_.size()}; }
    [[nodiscard]] friend bool operator==(owner_token const&, owner_token const&) noexcept = default;

    /// Effects: fills `size` (at most 256) bytes at `data` from `getrandom`.
    static void fill_random(void* data, std::size_t size)
    {
        for (;;) {
            auto const got = ::getrandom(data, size, 0);
            if (got == static_cast<ssize_t>(size)) return;
            if (got < 0 && errno != EINTR)
                throw error{errc::misconfigured, "getrandom gives no bits for an owner token; allow the system call"};
        }
    }

private:
    static constexpr std::string_view hexadecimal = "0123456789abcdef";
    std::array<char, 32> digits_{};
};

}  // namespace holdfast
