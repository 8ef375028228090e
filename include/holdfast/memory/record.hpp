// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/quorum/waiting_mark.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// What is asked of a record.
struct wanted_lease {
    access mode = access::sole;
    owner_token token{};
    std::optional<owner_token> beside{};    ///< see `acquire_request::beside`
    std::chrono::milliseconds waits_for{};  ///< see `quorum::waiting_mark`
};

/// The leases of one name: one that is exclusive, or any number of shared ones; and who waits. Not thread-safe.
///
/// | asked for       | refused if |
/// |-----------------|------------|
/// | sole, exclusive | another lease is there |
/// | exclusive       | a writer has just left, and readers waited for it; it is to stand beside a shared lease that is over |
/// | shared          | an exclusive lease of another owner is there; a writer waits, and readers have no turn |
class record {
public:
    /// Effects: grants `wanted` until `expires` if it is not refused at `now`. Returns: nothing if it is granted;
    /// otherwise when that may change.
    [[nodiscard]] std::optional<boot_clock::time_point> acquire(wanted_lease const& wanted, boot_clock::time_point now,
                                                                boot_clock::time_point expires)
    {
        forget_expired(now);
        if (wanted.mode == access::shared) {
            if (auto const until = refuses_reader(wanted, now)) {
                if (wanted.waits_for.count() > 0)
                    reader_waits_until_ = std::max(reader_waits_until_, now + wanted.waits_for);
                return until;
            }
            readers_.push_back({wanted.token, expires});
            if (!wanted.beside && writer_waits_until_ <= now) reader_waits_until_ = {};
            return std::nullopt;
        }
        if (auto const until = refuses_writer(wanted, now)) return until;
        owner_ = {wanted.token, expires};
        if (wanted.mode != access::exclusive || wanted.waits_for.count() > 0) no_writer_waits();  // others left no mark
        return std::nullopt;
    }

    /// Effects: no writer is known to wait.
    void no_writer_waits() noexcept { writer_waits_until_ = {}; }

    /// Effects: makes the lease of `token` end at `expires`. Returns: when it was to end before; nothing if it has none
    /// at `now`.
    [[nodiscard]] std::optional<boot_clock::time_point>
    extend(access mode, owner_token const& token, boot_clock::time_point now, boot_clock::time_point expires) noexcept
    {
        auto* const one = find(mode, token);
        if (!one || one->expires <= now) return std::nullopt;
        return std::exchange(one->expires, expires);
    }

    /// Effects: ends the lease of `token`. Returns: whether it had one at `now`.
    bool release(access mode, owner_token const& token, boot_clock::time_point now) noexcept
    {
        auto* const one = find(mode, token);
        if (!one) return false;
        bool const owned = one->expires > now;
        if (mode == access::shared) {
            readers_.erase(readers_.begin() + (one - readers_.data()));
            if (readers_.empty()) readers_turn_until_ = {};
        } else {
            *one = {};
        }
        if (mode == access::exclusive && reader_waits_until_ > now) {
            readers_turn_until_ = now + quorum::readers_turn;
            reader_waits_until_ = {};
        }
        return owned;
    }

    /// Effects: ends all leases, and forgets who waits.
    void clear() noexcept
    {
        readers_.clear();
        owner_ = {};
        writer_waits_until_ = reader_waits_until_ = readers_turn_until_ = {};
    }

    /// Returns: whether there is no lease at `now`.
    [[nodiscard]] bool free(boot_clock::time_point now) noexcept
    {
        forget_expired(now);
        return owner_.expires <= now && readers_.empty();
    }

    /// Returns: whether there is a lease at `now` that is alone.
    [[nodiscard]] bool owned(boot_clock::time_point now) const noexcept { return owner_.expires > now; }

    /// Returns: when the last lease ends.
    [[nodiscard]] boot_clock::time_point end() const noexcept
    {
        auto last = owner_.expires;
        for (auto const& one : readers_) last = std::max(last, one.expires);
        return last;
    }

    /// Returns: whether the lease of `token` is the one that is alone.
    [[nodiscard]] bool owned_by(owner_token const& token) const noexcept { return owner_.token == token; }

private:
    struct held {
        owner_token token{};
        boot_clock::time_point expires{};
    };

    [[nodiscard]] std::optional<boot_clock::time_point> refuses_writer(wanted_lease const& wanted,
                                                                       boot_clock::time_point now) noexcept
    {
        if (owner_.expires > now) return owner_.expires;
        if (wanted.beside && !find(access::shared, *wanted.beside)) return now;  // it was lost
        boot_clock::time_point last{};
        for (auto const& one : readers_)
            if (one.token != wanted.beside) last = std::max(last, one.expires);
        if (last > now) {
            if (wanted.mode == access::exclusive && wanted.waits_for.count() > 0)
                writer_waits_until_ = std::max(writer_waits_until_, now + wanted.waits_for);
            return last;
        }
        bool const turn_of_readers = wanted.mode == access::exclusive && !wanted.beside && readers_turn_until_ > now;
        return turn_of_readers ? std::optional{readers_turn_until_} : std::nullopt;
    }

    [[nodiscard]] std::optional<boot_clock::time_point> refuses_reader(wanted_lease const& wanted,
                                                                       boot_clock::time_point now) const noexcept
    {
        if (wanted.beside)
            return owner_.token == *wanted.beside && owner_.expires > now ? std::nullopt : std::optional{now};
        if (owner_.expires > now) return owner_.expires;
        bool const kept_out = writer_waits_until_ > now && readers_turn_until_ <= now;
        return kept_out ? std::optional{writer_waits_until_} : std::nullopt;
    }

    [[nodiscard]] held* find(access mode, owner_token const& token) noexcept
    {
        if (mode != access::shared) return owner_.token == token ? &owner_ : nullptr;
        for (auto& one : readers_)
            if (one.token == token) return &one;
        return nullptr;
    }

    void forget_expired(boot_clock::time_point now) noexcept
    {
        std::erase_if(readers_, [now](held const& one) { return one.expires <= now; });
    }

    held owner_;
    std::vector<held> readers_;
    boot_clock::time_point writer_waits_until_{};
    boot_clock::time_point reader_waits_until_{};
    boot_clock::time_point readers_turn_until_{};
};

}  // namespace holdfast::memory
