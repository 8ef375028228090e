// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/commands.hpp>

#include <cstddef>
#include <cstring>
#include <new>
#include <unordered_map>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// What a client knows of the votes of one node of several, by its own owner tokens. A token is in the ledger from when
/// it is drawn until a release of it is sent that may still arrive. Until then a renewal may ask for its vote.
///
/// | event at the node                                 | in the ledger | voted |
/// |---------------------------------------------------|---------------|-------|
/// | the token is drawn                                | yes           | no    |
/// | acquire, reacquire or extend is applied           |               | yes   |
/// | extend or reacquire is refused                    |               | no    |
/// | a release that undoes an unanswered acquire is answered |         | no    |
/// | the connection broke with an unanswered acquire or reacquire |    | yes: it may have |
/// | the connection broke with an unanswered release   | no            |       |
/// | the holder releases, or a lost round is rolled back | no          |       |
///
/// A vote is reacquired only for a token that is in the ledger: a release that arrived later would free a vote that was
/// counted. What is reacquired counts as an acquire does: docs/proofs.md, "A majority". No fence moves; see
/// docs/fencing-tokens.md.
class vote_ledger {
public:
    /// The most tokens. Beyond that, a new one replaces another, which can no longer be reacquired.
    static constexpr std::size_t most = 65536;

    /// Effects: notes that `token` was drawn, and nothing of it was sent. Without memory it is not in the ledger.
    void began(owner_token const& token) noexcept
    try {
        if (tokens_.size() >= most) spare_ = tokens_.extract(tokens_.begin());
        if (!spare_) return static_cast<void>(tokens_.try_emplace(token, false));
        spare_.key() = token;
        spare_.mapped() = false;
        tokens_.insert(std::move(spare_));
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): it is not reacquired
    }

    /// Effects: notes what the node answered to `c`.
    void answered(command const& c, answer const& a) noexcept
    {
        auto const found = tokens_.find(c.token);
        if (found == tokens_.end()) return;
        if ((asks_for_vote(c) || extends(c)) && a.what == answer::kind::applied) found->second = true;
        bool const gone = c.what == command::verb::release || (extends(c) && a.what == answer::kind::refused);
        if (gone && !a.error) found->second = false;
    }

    /// Effects: notes that the connection broke before `c` was answered.
    void lost(command const& c) noexcept
    {
        if (c.what == command::verb::release) released(c.token);
        auto const found = asks_for_vote(c) ? tokens_.find(c.token) : tokens_.end();
        if (found != tokens_.end()) found->second = true;
    }

    /// Effects: notes that a release of `token` is sent to the node.
    void released(owner_token const& token) noexcept
    {
        if (auto old = tokens_.extract(token)) spare_ = std::move(old);
    }

    /// Returns: whether no release of `token` may still arrive at the node.
    [[nodiscard]] bool no_release_in_flight(owner_token const& token) const noexcept { return tokens_.contains(token); }

    /// Returns: whether the node has voted for `token`, or may have, as far as the ledger knows.
    [[nodiscard]] bool voted_for(owner_token const& token) const noexcept
    {
        auto const found = tokens_.find(token);
        return found != tokens_.end() && found->second;
    }

    /// Returns: whether `token` does not have the vote of the node, and may ask for it.
    [[nodiscard]] bool may_reacquire(owner_token const& token) const noexcept
    {
        return no_release_in_flight(token) && !voted_for(token);
    }

private:
    /// A token is random already.
    struct hash {
        [[nodiscard]] std::size_t operator()(owner_token const& t) const noexcept
        {
            std::size_t bits = 0;
            std::memcpy(&bits, t.view().data(), sizeof bits);
            return bits;
        }
    };

    std::unordered_map<owner_token, bool, hash> tokens_;
    decltype(tokens_)::node_type spare_;  // of the last token released: a lock alone allocates nothing here
};

}  // namespace holdfast::redis
