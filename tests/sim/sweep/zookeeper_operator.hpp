// SPDX-License-Identifier: MIT
#pragma once

#include "history.hpp"
#include "user.hpp"
#include "zookeeper_numbers.hpp"
#include "zookeeper_servers.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace holdfast::test {

/// What an operator does to a lock once, and what the operator was told.
struct deed {
    enum class kind : std::uint8_t { force, request } what{};
    unsigned by = 0;  ///< the client in whose session it is done
    boot_clock::duration at{};
    std::size_t slot = 0;
    boot_clock::time_point begun = boot_clock::time_point::max();
    boot_clock::time_point done = boot_clock::time_point::max();
    std::optional<bool> held{};  ///< what the operator was told; nothing if it failed
    bool used = false;           ///< it has deleted a node
};

/// A renewal that was told to be done.
struct renewal {
    std::size_t claim = 0;
    boot_clock::time_point called{};
    boot_clock::time_point returned{};
    boot_clock::time_point until{};
    bool asked = false;  ///< the holder was told, too, that it is asked to release the lock
};

/// Judges what operators did to the locks of a schedule.
class zookeeper_operator {
public:
    using time_point = boot_clock::time_point;
    using duration = boot_clock::duration;

    /// `timeout`: of the sessions. `calm`: nothing goes wrong.
    zookeeper_operator(std::vector<node_change> const& changes, number_changes const& numbers, duration timeout,
                       bool calm)
        : changes_{changes}, numbers_{numbers}, timeout_{timeout}, calm_{calm}
    {
    }

    /// Effects: looks whether only those nodes of others are gone that a force deleted, one by each, and whether their
    /// holders learnt it. From the moment on at which its node was deleted, such a claim counts no more.
    /// Returns: the claims that count.
    [[nodiscard]] history judge(std::deque<deed>& deeds, std::vector<renewal> const& renewals, record& r) const
    {
        std::set<std::size_t> robbed;
        std::set<std::size_t> void_claims;  // their nodes were deleted before they were granted
        auto const rob_if = [&](node_change const& c, std::optional<std::size_t> victim) {
            deed* by = nullptr;  // the last that may have done it
            for (auto& d : deeds)
                if (d.what == deed::kind::force && !d.used && d.by == c.client && d.begun <= c.at)
                    if (!by || by->begun < d.begun) by = &d;
            if (!by || (victim && !robbed.insert(*victim).second)) return false;
            by->used = true;
            if (victim && c.at <= r.claims[*victim].granted) void_claims.insert(*victim);
            if (victim) rob(*victim, c.at, renewals, r);
            return true;
        };
        for (auto const& c : changes_) {
            if (c.what.what != zookeeper::request::kind::erase || !c.of_another || numbers_.explain(c)) continue;
            if (!rob_if(c, claim_of(c, r))) r.breach("K1", "a session removed the node of another one: " + c.what.path);
            bool const held = std::any_of(r.claims.begin(), r.claims.end(), [&](claim const& one) {
                return std::count(c.converted.begin(), c.converted.end(), one.node) != 0;
            });
            if (c.passed_over || held) r.breach("operator", "a client that waits lost its node: " + c.what.path);
        }
        // By its own session: before it was given back; then, so that the release found none.
        for (bool const given_back : {false, true})
            for (auto const& c : changes_) {
                auto const victim = claim_of(c, r);
                if (c.what.what != zookeeper::request::kind::erase || c.of_another || !victim) continue;
                bool const over = c.at >= r.claims[*victim].over();
                if (over == given_back && (!over || not_given_back(*victim, r.calls)))
                    static_cast<void>(rob_if(c, victim));
            }
        judge_requests(renewals, r);
        if (calm_) judge_answers(deeds, r);
        history valid;
        for (std::size_t i = 0; i < r.claims.size(); ++i)
            if (!void_claims.contains(i)) valid.push_back(r.claims[i]);
        return valid;
    }

private:
    static constexpr unsigned operators = 20;  // the clients of what operators did: each is one of its own

    /// Returns: how long what a server says may be older than the renewal that asks it.
    [[nodiscard]] duration oldest() const { return timeout_ / 16 + std::chrono::milliseconds{1}; }

    /// Returns: the number of the claim to the node of `c`; nothing if there is none.
    [[nodiscard]] static std::optional<std::size_t> claim_of(node_change const& c, record const& r)
    {
        auto const found = std::find_if(r.claims.begin(), r.claims.end(),
                                        [&](claim const& one) { return one.node != 0 && one.node == c.node; });
        if (found == r.claims.end()) return {};
        return static_cast<std::size_t>(found - r.claims.begin());
    }

    /// Returns: whether a release of that claim was refused.
    [[nodiscard]] static bool not_given_back(std::size_t which, calls const& all)
    {
        return std::any_of(all.begin(), all.end(), [&](call const& one) {
            return one.claim == which && one.what == call::kind::release && one.told == call::answer::refused;
        });
    }

    /// Effects: the node of that claim was deleted at `t`.
    void rob(std::size_t which, time_point t, std::vector<renewal> const& renewals, record& r) const
    {
        auto& victim = r.claims[which];
        victim.ended = std::min(victim.ended, std::max(t, victim.granted));
        victim.stops_by = {};
        victim.kept_until = {};
        auto const who = "client " + std::to_string(victim.client);
        for (auto const& one : renewals) {
            if (one.claim != which || one.returned <= t) continue;
            // What was known of the session when the node was still there promises no more than that.
            if (one.until > t + timeout_ * 51 / 100 + std::chrono::milliseconds{1})
                r.breach("operator", who + " was promised more of a lock that had been taken from it");
            if (calm_ && one.called > t + oldest())
                r.breach("operator", who + " did not learn with a renewal that its lock had been taken from it");
        }
        // The last renewals, and a release that was sent twice, may have been told to be done all the same.
        for (auto& one : r.calls)
            if (one.claim == which && one.what != call::kind::acquire && one.returned > t &&
                one.told == call::answer::done)
                one.told = call::answer::unknown;
        r.calls.push_back({.what = call::kind::release,
                           .told = call::answer::done,
                           .client = operators + static_cast<unsigned>(which),
                           .claim = which,
                           .called = t,
                           .returned = t});
    }

    /// Effects: looks whether just those who were asked to release the lock have learnt it.
    void judge_requests(std::vector<renewal> const& renewals, record& r) const
    {
        for (auto const& one : renewals) {
            auto const node = r.claims[one.claim].node;
            auto const asked = std::find_if(changes_.begin(), changes_.end(), [&](node_change const& c) {
                return c.node == node && c.what.what == zookeeper::request::kind::write &&
                       zookeeper::asks_for_release(c.what.content);
            });
            bool const was = asked != changes_.end();
            auto const who = "client " + std::to_string(r.claims[one.claim].client);
            if (one.asked && (!was || asked->at > one.returned))
                r.breach("operator", who + " was told of a request that there was not");
            if (calm_ && was && !one.asked && one.called > asked->at + oldest())
                r.breach("operator", who + " did not learn with a renewal that it is asked for its lock");
        }
    }

    /// Effects: looks whether an operator was not told that a lock is free while one client held it all the time.
    void judge_answers(std::deque<deed> const& deeds, record& r) const
    {
        constexpr auto just_now = std::chrono::milliseconds{10};  // a server may not know yet
        for (auto const& d : deeds)
            for (auto const& c : r.claims)
                if (d.held == false && c.slot == d.slot && c.granted + just_now < d.begun && c.over() > d.done)
                    r.breach("operator",
                             "was told that the lock is free while client " + std::to_string(c.client) + " held it");
    }

    std::vector<node_change> const& changes_;
    number_changes const& numbers_;
    duration timeout_;
    bool calm_;
};

}  // namespace holdfast::test
