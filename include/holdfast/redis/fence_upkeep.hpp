// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/commands.hpp>

#include <chrono>
#include <utility>

namespace holdfast::redis {

/// Looks after the fences of one node, so that they cost little.
///
/// - A fence is kept for as long as it has to be, and its end is put off only where little more than that is left: that is an eighth of what a
///   lock costs a server.
/// - An acquire whose fence is known to be there goes as `take`, two plain commands: half of what the script costs a server. They are two
///   steps, and in between another client's may come. The fence moves behind the key then. That does no harm: it moves behind another holder's only
///   where the key was gone before, with its ttl; the grant that carries it comes too late to be used.
/// - A fence by the clock is a plain counter for as long as `catch_up` only: then the script has it catch up. So a server that goes back to
///   older data behind a connection that stands is noticed: at once where the fence is less than this client has seen, otherwise because it is
///   behind the clock; unless it went back by less than that time.
/// - `INCRBY` moves the fence with a no, too. Where one was refused, or is not answered yet, the next acquires of this lock go by the script,
///   so that whoever asks again and again does not drive the fence ahead of the clocks.
/// - Of a fence that somebody deleted, `INCRBY` makes one without an end. It is below the floor, so it does not count, and the next acquire
///   of this lock that is granted gives it its value and its end.
class fence_upkeep {
public:
    explicit fence_upkeep(unsigned node) noexcept : node_{node} {}

    /// A connection was made. A server that was away may have come back without the fences, or with older ends than its answers had shown.
    void connected(boot_clock::time_point now) noexcept
    {
        up_since_ = now;
        refused_ = false;
    }

    /// Effects: has `c`, which is sent at `sent`, keep its fence for `least` at least, and go as cheaply as it may.
    void prepare(command& c, boot_clock::time_point sent, std::chrono::milliseconds least) const noexcept
    {
        c.fence_lifetime = least + least / 8;
        if (node_ >= c.keys->known.size()) return;
        auto& known = c.keys->known[node_];
        bool const clocked = c.fence == fence_source::clock;
        bool const since_up = known.fence_kept_until - c.fence_lifetime >= up_since_;
        if (clocked) c.floor = known.fence;
        c.keep_end = since_up && known.fence_kept_until - sent > (clocked ? c.fence_lifetime - catch_up : least + least / 16);
        bool const fenced = c.what == command::verb::acquire && c.fence != fence_source::none;
        if (fenced && c.first && c.keep_end && !refused_ && std::exchange(known.granted, false)) c.what = command::verb::take;
        c.first = false;
    }

    /// Effects: notes what the answer to `c` tells. Returns: whether it counts; otherwise the fence was gone, whatever is known of it, and the
    /// lock has to be acquired, for the same token.
    [[nodiscard]] bool note(command const& c, answer const& a, boot_clock::time_point sent) noexcept
    {
        bool const plain = c.what == command::verb::take;
        bool const asked = plain || c.what == command::verb::acquire;
        if (!asked || c.fence == fence_source::none || a.what == answer::kind::error || node_ >= c.keys->known.size()) return true;
        auto& known = c.keys->known[node_];
        known.granted = a.what == answer::kind::yes;
        if (!known.granted) return true;
        if (plain && a.fence < c.floor + c.batch) {
            known.fence_kept_until = {};
            refused_ = refused_ || a.fence == 0;
            return false;
        }
        known.fence = a.fence;
        if (!plain && !c.keep_end) known.fence_kept_until = sent + c.fence_lifetime;
        return true;
    }

private:
    static constexpr std::chrono::milliseconds catch_up{1000};

    unsigned node_;
    boot_clock::time_point up_since_{};
    bool refused_ = false;  ///< the server does not do INCRBY for this user
};

}  // namespace holdfast::redis
