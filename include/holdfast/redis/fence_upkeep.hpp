// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/commands.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace holdfast::redis {

/// Looks after the fences of one node, so that they cost little.
///
/// - A fence is kept for as long as it has to be, and its end is put off only where little more than that is left: that is an eighth of what a
///   lock costs a server.
/// - An acquire whose fence is known to be there goes as `take`, two plain commands: half of what the script costs a server. They are two
///   steps, and in between another client's may come. The fence moves behind the key then. That does no harm: it moves behind another holder's only
///   where the key was gone before, with its ttl; the grant that carries it comes too late to be used.
/// - The first acquire of a lock of several masters goes plainly, too, which is less than half of what the script costs a server. A fence that is
///   missing begins with the proposal then, by `SET NX PXAT`: so the server knows by its own clock whether the proposal is too old, see `prepare`.
///   It is not too far ahead, as the server has told its clock lately: it is asked again, with an acquire that goes by the script, where that is
///   long ago.
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
    /// Its clock stood at `clock` by then; 0: it was not asked.
    void connected(boot_clock::time_point now, std::chrono::microseconds clock) noexcept
    {
        up_since_ = now;
        clock_ = clock;
        refused_ = seed_refused_ = scripted_ = false;
    }

    /// Effects: has `c`, which is sent at `sent`, keep its fence for `least` at least, and go as cheaply as it may.
    ///
    /// What a missing fence begins with must not be behind one that the server has forgotten. That was ahead of the server's clock by no more than
    /// a guard and a half when its end was put off last, which is three eighths of `least` at most, and was kept for `least` from then on; so it is
    /// behind the clock by more than half of that when it is gone. A proposal that is a quarter of `least` old when it arrives, be it that it was under
    /// way for so long or that the client's clock stood still, has ended before it begins: `seed_until`; the count shows that. Nor must it be further
    /// ahead of the server's clock than `max_lead`: where it is no further ahead of what the server has told, it is not.
    void prepare(command& c, boot_clock::time_point sent, std::chrono::milliseconds least) const noexcept
    {
        c.fence_lifetime = least + least / 8;
        if (node_ >= c.keys->known.size()) return;
        auto& known = c.keys->known[node_];
        bool const clocked = c.fence == fence_source::clock;
        bool const since_up = known.fence_kept_until - c.fence_lifetime >= up_since_;
        if (clocked) c.floor = known.fence;
        c.keep_end = since_up && known.fence_kept_until - sent > (clocked ? c.fence_lifetime - catch_up : least + least / 16);
        bool const first = std::exchange(c.first, false);
        c.looks = false;
        c.seed_until = {};
        if (c.what != command::verb::acquire || c.fence == fence_source::none) return;
        bool const unknown = !std::exchange(known.asked, true);
        if (!first || refused_) return;
        if (unknown && could_seed(c, least)) {
            c.looks = !within(c.value, c.max_lead * 3 / 4);
            if (!within(c.value, c.max_lead) || c.value < c.floor) return;
            c.what = command::verb::take;
            c.seed_until = std::chrono::milliseconds{c.value / 1000} + least / 4;
        } else if (c.keep_end && std::exchange(known.granted, false)) {
            c.what = command::verb::take;
        }
    }

    /// Effects: notes what the answer to `c` tells. Returns: whether it counts; otherwise the fence was gone, whatever is known of it, and the
    /// lock has to be acquired, for the same token.
    [[nodiscard]] bool note(command const& c, answer const& a, boot_clock::time_point sent) noexcept
    {
        clock_ = std::max(clock_, a.clock);
        seed_refused_ = seed_refused_ || a.seed_refused;
        bool const plain = c.what == command::verb::take;
        scripted_ = scripted_ || (!plain && a.what != answer::kind::error);
        bool const asked = plain || c.what == command::verb::acquire;
        if (!asked || c.fence == fence_source::none || a.what == answer::kind::error || node_ >= c.keys->known.size()) return true;
        auto& known = c.keys->known[node_];
        known.granted = a.what == answer::kind::yes;
        if (!known.granted) return true;
        if (plain && (a.fence < c.floor + c.batch || (seeds(c) && !a.kept))) {
            if (seeds(c)) clock_ = std::min(clock_, long_ago);
            known.fence_kept_until = {};
            refused_ = refused_ || a.fence == 0;
            return false;
        }
        known.fence = a.fence;
        if (plain ? seeds(c) : !c.keep_end) known.fence_kept_until = sent + c.fence_lifetime;
        return true;
    }

private:
    static constexpr std::chrono::milliseconds catch_up{1000};
    static constexpr std::chrono::microseconds long_ago{1};

    /// Returns: whether a fence is ahead of what the server has told of its clock, and so ahead of its clock by no more than `lead`. What is
    /// behind is of a clock that stood still.
    [[nodiscard]] bool within(std::uint64_t fence, std::chrono::microseconds lead) const noexcept
    {
        return fence >= static_cast<std::uint64_t>(clock_.count()) && fence <= static_cast<std::uint64_t>((clock_ + lead).count());
    }

    /// Returns: whether a fence may begin with the proposal of `c` where that is near the server's clock. The guard is twice the lead. Who may not
    /// run scripts could not give the lock back: he is to know before he has it.
    [[nodiscard]] bool could_seed(command const& c, std::chrono::milliseconds least) const noexcept
    {
        return c.fence == fence_source::counter && c.value != 0 && clock_.count() != 0 && scripted_ && !seed_refused_ && 2 * c.max_lead <= least / 4;
    }

    unsigned node_;
    boot_clock::time_point up_since_{};
    std::chrono::microseconds clock_{};  ///< the server's, as it has told at last; it is ahead of that by now
    bool refused_ = false;       ///< the server does not do INCRBY for this user
    bool seed_refused_ = false;  ///< nor SET NX PXAT, which is as old as Redis 6.2
    bool scripted_ = false;      ///< it has run a script over this connection
};

}  // namespace holdfast::redis
