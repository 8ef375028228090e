// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/number.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// Something that chance decided: the parts of a schedule, each of which can be left out. It has the same name and
/// extent in every run of a seed, whatever else is left out.
struct decision {
    enum class kind : std::uint8_t {
        late,          ///< a message takes longer
        lost_request,  ///< it never arrives, nor does anything after it
        lost_reply,
        repeated_request,  ///< it arrives once more
        cut,               ///< the connection breaks
        lost_report,       ///< a client is not told of a release
        pause,             ///< a process stands still
        asleep,            ///< a machine is suspended: the process and its monotonic clock stand still
        wall_jump,         ///< a machine's wall clock is set
        crash,             ///< a server ends, and starts again
        hang,              ///< a server stands still
        wave,              ///< many servers forget at once
        poison,            ///< another user writes a fence counter
        expiry,            ///< the servers end a session
        election,          ///< no leader for a while, then another
        isolation,         ///< a server is cut off from the leader
        collection,        ///< an empty container is collected
        eviction,          ///< a server evicts a lock's key, or another user deletes it
        refusal,           ///< a server refuses for a while
        flush,             ///< a server forgets its scripts
        rights,            ///< a client has not the rights to the queue of waiters, or gets them
        clock_set,         ///< a server's clock is set while it runs
        kill,              ///< a process is killed
        clock,             ///< a clock differs from the world's
        client,            ///< a client that wants the lock
        operation,         ///< an acquire, with what follows
        straggler,         ///< a client that comes at the end, and connected at the beginning
    };
    static constexpr std::size_t kinds = 27;

    /// No client, or no node, is concerned.
    static constexpr std::uint8_t nobody = 15;

    kind what{};
    std::uint8_t client = nobody;
    std::uint8_t node = nobody;
    std::uint32_t number = 0;  ///< of its kind, with this client and this node

    friend auto operator<=>(decision const&, decision const&) = default;

    [[nodiscard]] static std::string_view name(kind k) noexcept
    {
        static constexpr std::array<std::string_view, kinds> names{
            "late",       "lost_request", "lost_reply", "repeated_request",
            "cut",        "lost_report",  "pause",      "asleep",
            "wall_jump",  "crash",        "hang",       "wave",
            "poison",     "expiry",       "election",   "isolation",
            "collection", "eviction",     "refusal",    "flush",
            "rights",     "clock_set",    "kill",       "clock",
            "client",     "operation",    "straggler"};
        return names[static_cast<std::size_t>(k)];
    }

    /// Returns: its name, such as `pause.c2.17` or `late.c0.n3.5`.
    [[nodiscard]] std::string text() const
    {
        std::string t{name(what)};
        if (client != nobody) t += ".c" + std::to_string(client);
        if (node != nobody) t += ".n" + std::to_string(node);
        return t + '.' + std::to_string(number);
    }

    /// Returns: the decision of that name; nothing if there is none.
    [[nodiscard]] static std::optional<decision> from(std::string_view t)
    {
        decision d;
        auto const part = [&t] {
            auto const end = std::min(t.find('.'), t.size());
            auto const p = t.substr(0, end);
            t.remove_prefix(std::min(end + 1, t.size()));
            return p;
        };
        auto const number = [](std::string_view p, auto& to) {
            auto const n = holdfast::detail::number_in<std::remove_reference_t<decltype(to)>>(p);
            if (n) to = *n;
            return n.has_value();
        };
        auto const called = part();
        std::size_t k = 0;
        while (k < kinds && name(static_cast<kind>(k)) != called) ++k;
        if (k == kinds) return {};
        d.what = static_cast<kind>(k);
        auto p = part();
        if (p.starts_with('c')) {
            if (!number(p.substr(1), d.client)) return {};
            p = part();
        }
        if (p.starts_with('n')) {
            if (!number(p.substr(1), d.node)) return {};
            p = part();
        }
        if (!number(p, d.number) || !t.empty()) return {};
        return d;
    }
};

/// Which decisions come true: all of them, or only those that are kept. On request it remembers which did.
class decisions {
public:
    /// Effects: only these come true.
    void keep_only(std::vector<decision> some)
    {
        std::sort(some.begin(), some.end());
        kept_ = std::move(some);
    }

    void remember() { taken_.emplace(); }

    /// Returns: whether `d` comes true.
    [[nodiscard]] bool take(decision const& d)
    {
        if (kept_ && !std::binary_search(kept_->begin(), kept_->end(), d)) return false;
        if (taken_) taken_->push_back(d);
        return true;
    }

    /// Returns: what has come true, in this order.
    [[nodiscard]] std::vector<decision> taken() const { return taken_.value_or(std::vector<decision>{}); }

private:
    std::optional<std::vector<decision>> kept_;
    std::optional<std::vector<decision>> taken_;
};

}  // namespace holdfast::sim
