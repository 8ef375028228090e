// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/keys.hpp>

/// What a client knows of the vote of one node for its own owner token: whether a release has to be kept for it, and whether a renewal may ask for
/// it anew, where the node has lost it, or was away when the lock was taken. It forgets what concerns earlier tokens.
///
/// | event at the node                                          | may have voted | intact |
/// |------------------------------------------------------------|----------------|--------|
/// | the token is drawn                                         |                | yes    |
/// | yes to what asks for a vote, or extends                    | yes            |        |
/// | no to an extension                                         | no             |        |
/// | the connection broke with an unanswered ask for a vote     | yes            |        |
/// | the connection broke with an unanswered release            |                | no     |
/// | the holder releases                                        |                | no     |
///
/// A vote is regained only while the token is intact there: a release that was on its way over a connection that broke may arrive behind what
/// goes over the next one, and would free what has counted; and what arrives behind the holder's own release would stay. Nothing is rolled back
/// where the answer is lost: whoever extends has the lock, and will release it. Why what is regained counts: as an acquire it makes the key the
/// token's where nobody has it, on a node that may vote; with that, a majority has the key for the whole of the new lease. It has no fence:
/// whoever comes next meets that of this lock on the majority that granted it, or, on a node that forgot it, a clock that has passed it.
namespace holdfast::redis::votes {

/// Effects: notes that `token` is drawn, and nobody has been sent anything of it.
inline void begin(lock_keys const& keys, owner_token const& token) noexcept
{
    for (auto& one : keys.known) one.intact = token;
}

/// Effects: notes what `node` answered to `c`.
inline void note(command const& c, unsigned node, answer const& a) noexcept
{
    if (node >= c.keys->known.size()) return;
    if (a.fence_replaced) c.keys->fences_replaced |= 1U << node;
    auto& voter = c.keys->known[node].voter;
    if ((asks_for_vote(c) || extends(c)) && a.what == answer::kind::yes) voter = c.token;
    if (extends(c) && a.what == answer::kind::no && voter == c.token) voter = {};
}

/// Effects: notes that the connection to `node` broke when `c` was on its way, or its answer.
inline void lost(command const& c, unsigned node) noexcept
{
    if (node >= c.keys->known.size()) return;
    auto& known = c.keys->known[node];
    if (asks_for_vote(c)) known.voter = c.token;
    if (c.what == command::verb::release && known.intact == c.token) known.intact = {};
}

/// Effects: notes that the holder has `c`, a release, sent to `node`.
inline void released(command const& c, unsigned node) noexcept
{
    if (node < c.keys->known.size() && c.keys->known[node].intact == c.token) c.keys->known[node].intact = {};
}

/// Returns: whether the token of `c` is intact at `node`, as far as anybody notes it.
[[nodiscard]] inline bool intact(command const& c, unsigned node) noexcept
{
    return node >= c.keys->known.size() || c.keys->known[node].intact == c.token;
}

/// Returns: whether `node` may have voted for the token of `c`.
[[nodiscard]] inline bool may_be_there(command const& c, unsigned node) noexcept
{
    auto const& known = c.keys->known;
    return node < known.size() && known[node].voter == c.token;
}

/// Returns: whether the token of `c` does not have the vote of `node`, and may ask for it.
[[nodiscard]] inline bool may_regain(command const& c, unsigned node) noexcept
{
    auto const& known = c.keys->known;
    return node < known.size() && known[node].voter != c.token && known[node].intact == c.token;
}

}  // namespace holdfast::redis::votes
