// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/commands.hpp>

#include <chrono>

namespace holdfast::redis {

/// Has one node keep the fences for as long as they have to be kept, and puts their ends off only where little more than that is left:
/// that is an eighth of what a lock costs a server.
class fence_upkeep {
public:
    explicit fence_upkeep(unsigned node) noexcept : node_{node} {}

    /// A connection was made. A server that was away may have come back with older ends than its answers had shown.
    void connected(boot_clock::time_point now) noexcept { up_since_ = now; }

    /// Effects: has `c`, which is sent at `sent`, keep its fence for `least` at least.
    void prepare(command& c, boot_clock::time_point sent, std::chrono::milliseconds least) const noexcept
    {
        c.fence_lifetime = least + least / 8;
        auto const& kept = c.keys->fence_kept_until;
        if (node_ >= kept.size()) return;
        bool const since_up = kept[node_] - c.fence_lifetime >= up_since_;
        c.keep_end = since_up && kept[node_] - sent > least + least / 16;
    }

    /// Effects: notes what the end of a fence is, from the answer to `c`.
    void note(command const& c, answer const& a, boot_clock::time_point sent) const noexcept
    {
        auto& kept = c.keys->fence_kept_until;
        bool const written = c.what == command::verb::acquire && c.fence == fence_source::counter && !c.keep_end;
        if (written && a.what == answer::kind::yes && node_ < kept.size()) kept[node_] = sent + c.fence_lifetime;
    }

private:
    unsigned node_;
    boot_clock::time_point up_since_{};
};

}  // namespace holdfast::redis
