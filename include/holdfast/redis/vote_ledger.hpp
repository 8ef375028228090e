// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/quorum/node_set.hpp>
#include <holdfast/redis/commands.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// The tokens in the ledgers of a client's nodes. A token is in most of them, or in none, so it is here once.
class vote_table {
    friend class vote_ledger;

    struct votes {
        quorum::node_set in;     // whose ledger it is in
        quorum::node_set given;  // that have voted, or may have
    };

    /// A token is random already.
    struct hash {
        [[nodiscard]] std::size_t operator()(owner_token const& t) const noexcept
        {
            std::size_t bits = 0;
            std::memcpy(&bits, t.view().data(), sizeof bits);
            return bits;
        }
    };

    std::unordered_map<owner_token, votes, hash> tokens_;
    decltype(tokens_)::node_type spare_;  // of the last token released: a lock alone allocates nothing here
};

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

    /// `all`: also has the tokens of the other nodes.
    vote_ledger(std::shared_ptr<vote_table> all, unsigned node) noexcept : all_{std::move(all)}, node_{node} {}

    /// Effects: notes that `token` was drawn, and nothing of it was sent. Without memory it is not in the ledger.
    void began(owner_token const& token) noexcept
    try {
        auto& tokens = all_->tokens_;
        auto& spare = all_->spare_;
        auto found = tokens.find(token);
        if (found == tokens.end()) {
            if (tokens.size() >= most) spare = tokens.extract(tokens.begin());
            if (spare) {
                spare.key() = token;
                spare.mapped() = {};
                found = tokens.insert(std::move(spare)).position;
            } else {
                found = tokens.try_emplace(token).first;
            }
        }
        found->second.in.add(node_);
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): it is not reacquired
    }

    /// Effects: notes what the node answered to `c`.
    void answered(command const& c, answer const& a) noexcept
    {
        auto* const found = find(c.token);
        if (!found) return;
        if ((asks_for_vote(c) || extends(c)) && a.what == answer::kind::applied) found->given.add(node_);
        bool const gone = c.what == command::verb::release || (extends(c) && a.what == answer::kind::refused);
        if (gone && !a.error) found->given.remove(node_);
    }

    /// Effects: notes that the connection broke before `c` was answered.
    void lost(command const& c) noexcept
    {
        if (c.what == command::verb::release) released(c.token);
        auto* const found = asks_for_vote(c) ? find(c.token) : nullptr;
        if (found) found->given.add(node_);
    }

    /// Effects: notes that a release of `token` is sent to the node.
    void released(owner_token const& token) noexcept
    {
        auto* const found = find(token);
        if (!found) return;
        found->in.remove(node_);
        found->given.remove(node_);
        if (found->in.empty()) all_->spare_ = all_->tokens_.extract(token);
    }

    /// Returns: whether no release of `token` may still arrive at the node.
    [[nodiscard]] bool no_release_in_flight(owner_token const& token) const noexcept { return find(token) != nullptr; }

    /// Returns: whether the node has voted for `token`, or may have, as far as the ledger knows.
    [[nodiscard]] bool voted_for(owner_token const& token) const noexcept
    {
        auto const* const found = find(token);
        return found && found->given.has(node_);
    }

    /// Returns: whether `token` does not have the vote of the node, and may ask for it.
    [[nodiscard]] bool may_reacquire(owner_token const& token) const noexcept
    {
        auto const* const found = find(token);
        return found && !found->given.has(node_);
    }

private:
    /// Returns: what is known of a token that is in this ledger; null if it is not.
    [[nodiscard]] vote_table::votes* find(owner_token const& token) const noexcept
    {
        auto const found = all_->tokens_.find(token);
        return found != all_->tokens_.end() && found->second.in.has(node_) ? &found->second : nullptr;
    }

    std::shared_ptr<vote_table> all_;
    unsigned node_;
};

}  // namespace holdfast::redis
