// SPDX-License-Identifier: MIT
#pragma once

#include "faults/record.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace holdfast::test {

/// Writes histories by hand. Times are in ms.
class history {
public:
    using event = faults::event;

    history& add(event what, std::uint32_t client, std::uint32_t hold, std::int64_t at, std::uint64_t value = 0)
    {
        records_.push_back({.at = at * ms, .value = value, .client = client, .lock = 1, .hold = hold, .what = what});
        return *this;
    }

    history& granted(std::uint32_t client, std::uint32_t hold, std::int64_t begun, std::int64_t ok,
                     std::int64_t valid_until, std::uint64_t token = 1)
    {
        add(event::acquire_begun, client, hold, begun).add(event::acquire_ok, client, hold, ok);
        records_.back().token = token;
        records_.back().valid_until = valid_until * ms;
        return *this;
    }

    history& shared(std::uint32_t client, std::uint32_t hold, std::int64_t begun, std::int64_t ok,
                    std::int64_t valid_until, std::uint64_t token = 1)
    {
        granted(client, hold, begun, ok, valid_until, token);
        records_[records_.size() - 2].shared = true;
        records_.back().shared = true;
        return *this;
    }

    history& renewed(std::uint32_t client, std::uint32_t hold, std::int64_t at, std::int64_t valid_until)
    {
        add(event::renewed, client, hold, at);
        records_.back().valid_until = valid_until * ms;
        return *this;
    }

    history& refused(std::uint32_t client, std::uint32_t hold, std::int64_t begun, std::int64_t done)
    {
        return add(event::acquire_begun, client, hold, begun).add(event::acquire_failed, client, hold, done);
    }

    history& shared_refused(std::uint32_t client, std::uint32_t hold, std::int64_t begun, std::int64_t done)
    {
        refused(client, hold, begun, done);
        records_[records_.size() - 2].shared = true;
        records_.back().shared = true;
        return *this;
    }

    history& released(std::uint32_t client, std::uint32_t hold, std::int64_t begun, std::int64_t done,
                      faults::release_result result = faults::release_result::freed)
    {
        return add(event::release_begun, client, hold, begun)
            .add(event::release_done, client, hold, done, static_cast<std::uint64_t>(result));
    }

    /// An operator takes the lock from its holder.
    history& broken(std::int64_t begun, std::int64_t done)
    {
        return add(event::broken, faults::director, 0, done, static_cast<std::uint64_t>(begun * ms));
    }

    /// Given up, but kept until `until`.
    history& kept(std::uint32_t client, std::uint32_t hold, std::int64_t begun, std::int64_t done, std::int64_t until)
    {
        released(client, hold, begun, done, faults::release_result::unknown);
        records_.back().valid_until = until * ms;
        return *this;
    }

    [[nodiscard]] std::vector<faults::record> sorted() const
    {
        auto all = records_;
        std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.at < b.at; });
        return all;
    }

private:
    static constexpr std::int64_t ms = 1'000'000;

    std::vector<faults::record> records_;
};

}  // namespace holdfast::test
