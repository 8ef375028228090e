# SPDX-License-Identifier: MIT
"""The mutants: ways to break the library that the simulation has to notice.

Each is a name, a header under include/holdfast, texts in it with what replaces them, and, where the header's folder does not say it, the
simulations that have to notice: "redis" (one and several masters), "zookeeper" (both forms, in time), "interleaving" (the queue, in every
order). All mutants are in one program, and MUTANT is whether this one is asked for: without it, what replaces a text does what the text did.
A text that is not there exactly once is an error: the table has to follow the code. Mutants of one text keep it, but for the last.
"""

QUEUE = "zookeeper/queue_machine.hpp"
LEASE = "zookeeper/session_lease.hpp"

MUTANTS = {
    # How many, and until when.
    "quorum of 2 of 5": ("redis/acquire_round.hpp", [("return quorum(nodes_);", "return MUTANT && nodes_ >= 5 ? 2 : quorum(nodes_);")]),
    "renewal by 2 of 5": ("redis/ballot.hpp", [("return quorum(all_.size());", "return MUTANT && all_.size() >= 5 ? 2 : quorum(all_.size());")]),
    "validity counted from the end": (
        "redis/acquire_machine.hpp",
        [(".valid_until = round_.validity(),", ".valid_until = MUTANT ? valid_until(now, set_.request.ttl) : round_.validity(),")],
    ),
    "no validity check": ("redis/acquire_machine.hpp", [("if (round_.won() && round_.usable(now))", "if (round_.won() && (MUTANT || round_.usable(now)))")]),
    "renewed validity counted from the end": (
        "redis/extend_machine.hpp",
        [("auto const until = valid_until(sent_, ttl_);", "auto const until = valid_until(MUTANT ? now_ : sent_, ttl_);")],
    ),
    "no drift margin": ("core/validity.hpp", [("return boot_clock::duration{ttl} / 100 + std::chrono::milliseconds{2};",
                                               "return MUTANT ? boot_clock::duration{} : boot_clock::duration{ttl} / 100 + std::chrono::milliseconds{2};")]),
    "a session counted on for twice its timeout": (
        LEASE,
        [("std::min(settled_ + timeout_ - drift(timeout_), valid_until(sent, duration(timeout_)))",
          "(MUTANT ? settled_ + timeout_ * 2 : std::min(settled_ + timeout_ - drift(timeout_), valid_until(sent, duration(timeout_))))")],
        ["zookeeper"],
    ),
    "a follower's word taken for a quorum's": (LEASE, [("if (by_quorum) {", "if (by_quorum || MUTANT) {")], ["zookeeper"]),
    "a leader that knows at once whom a follower heard of": (
        LEASE,
        [("if (one.received <= sent - timeout_ / 4)", "if (one.received <= (MUTANT ? sent : sent - timeout_ / 4))")],
        ["zookeeper"],
    ),
    "a write taken for word of its session": (
        LEASE,
        [("for (auto const& one : words_)\n", "if (MUTANT) settled_ = sent;\n        for (auto const& one : words_)\n")],
        ["zookeeper"],
    ),
    "wall-clock validity": ("core/clock.hpp", [("CLOCK_BOOTTIME, &t", "MUTANT ? CLOCK_REALTIME : CLOCK_BOOTTIME, &t")]),
    "a clock that stands still while the machine sleeps": (
        "core/clock.hpp",
        [("CLOCK_BOOTTIME, &t", "MUTANT ? CLOCK_MONOTONIC : CLOCK_BOOTTIME, &t")],
    ),
    "wall-clock validity of a session": (
        "core/clock.hpp",
        [("CLOCK_BOOTTIME, &t", "MUTANT ? CLOCK_REALTIME : CLOCK_BOOTTIME, &t")],
        ["zookeeper"],
    ),
    # Renewal.
    "renewal stops at the first error": (
        "lock/tenure.hpp",
        [("renew_at_ = now + std::max<boot_clock::duration>(left / 4, std::chrono::milliseconds{2});",
          "if (MUTANT)\n            renew_at_ = boot_clock::time_point::max();\n        else\n"
          "            renew_at_ = now + std::max<boot_clock::duration>(left / 4, std::chrono::milliseconds{2});")],
    ),
    "a no counted as a yes": (
        "redis/ballot.hpp",
        [("case answer::kind::no: no_.add(node); break;", "case answer::kind::no: (MUTANT ? yes_ : no_).add(node); break;")],
    ),
    # A vote that a renewal takes back.
    "a lost vote taken from another": (
        "sim/node.hpp",
        [("case regain:\n            if (found != keys_.end() && !ours) return redis::answer::no();\n            if (!ours) grant(c, t);",
          "case regain:\n            if (!MUTANT && found != keys_.end() && !ours) return redis::answer::no();\n            if (!ours) grant(c, t);")],
    ),
    "a lost vote taken back from who has none": ("redis/ballot_operation.hpp", [("&& !transport_.may_vote(node, transport_.now())",
                                                                                      "&& (MUTANT || !transport_.may_vote(node, transport_.now()))")]),
    # Whose it is.
    "delete without compare": (
        "sim/node.hpp",
        [("if (!ours) return redis::answer::no();\n            keys_.erase(found);",
          "if (MUTANT ? found == keys_.end() : !ours) return redis::answer::no();\n            keys_.erase(found);")],
    ),
    "extend true on a missing key": (
        "sim/node.hpp",
        [("if (!ours) return redis::answer::no();\n            prolong",
          "if (MUTANT && found == keys_.end()) return redis::answer::yes();\n"
          "            if (!ours) return redis::answer::no();\n            prolong")],
    ),
    "extend without compare": (
        "sim/node.hpp",
        [("if (!ours) return redis::answer::no();\n            prolong",
          "if (MUTANT ? found == keys_.end() : !ours) return redis::answer::no();\n            prolong")],
    ),
    "token used again": (
        "redis/acquire_operation.hpp",
        [("if (step.new_token) draw_token();", "if (step.new_token && !(MUTANT && token_ != owner_token{})) draw_token();")],
    ),
    "failed round not rolled back": (
        "redis/acquire_machine.hpp",
        [("if (phase_ == phase::asking && !round_.certainly_held()) step.roll_back = all_;",
          "if (!MUTANT && phase_ == phase::asking && !round_.certainly_held()) step.roll_back = all_;")],
    ),
    # Fences.
    "fence without write-back": (
        "redis/acquire_round.hpp",
        [("if (v.fence < fence_) return node_set::of(node);", "if (!MUTANT && v.fence < fence_) return node_set::of(node);")],
    ),
    "least fence instead of the greatest": (
        "redis/acquire_round.hpp",
        [("fence_ = std::max(fence_, v.fence);", "fence_ = MUTANT && fence_ != 0 ? std::min(fence_, v.fence) : std::max(fence_, v.fence);")],
    ),
    "fences of an old snapshot believed": (
        "redis/admission.hpp",
        [("return f.count() < 1 ? 1 : static_cast<std::uint64_t>(f.count());", "return MUTANT || f.count() < 1 ? 1 : static_cast<std::uint64_t>(f.count());")],
    ),
    "a fence believed however far ahead": (
        "sim/node.hpp",
        [("noexcept { return value > most(c, t); }", "noexcept { return !MUTANT && value > most(c, t); }")],
    ),
    "a fence passed on however far ahead": (
        "sim/node.hpp",
        [("if (!ours || foreign(c, c.value, t) || !counts(c, t))", "if (!ours || (!MUTANT && (foreign(c, c.value, t) || !counts(c, t))))")],
    ),
    "a lost fence begun at the clock": (
        "sim/node.hpp",
        [("            write_fence(c, most(c, t), t, counter::lost);", "            write_fence(c, MUTANT ? clock : most(c, t), t, counter::lost);")],
    ),
    # Who may vote.
    "no restart guard": ("redis/admission.hpp", [("if (now - seen.started < guard_)", "if (!MUTANT && now - seen.started < guard_)")]),
    "a guard as long as the client's own ttl": ("sim/transport.hpp", [("        return options.restart_guard;\n",
                                                                      "        return MUTANT && options.restart_guard.count() != 0 ? options.longest_ttl : options.restart_guard;\n")]),
    "clocks not compared": (
        "redis/admission.hpp",
        [("if (guard_ == boot_clock::duration::zero() || seen.near >= quorum(nodes_)) return {};", 
          "if (MUTANT ? seen.near > 0 : guard_ == boot_clock::duration::zero() || seen.near >= quorum(nodes_)) return {};")],
    ),
    "the time that a greeting took left out": (
        "redis/admission.hpp",
        [("auto const doubt = std::chrono::ceil<microseconds>(took) / 2;",
          "auto const doubt = MUTANT ? microseconds{} : std::chrono::ceil<microseconds>(took) / 2;")],
    ),
    # ZooKeeper: who is first.
    "sequence compared as text": (
        "zookeeper/node_name.hpp",
        [("std::sort(places.begin(), places.end());",
          "std::sort(places.begin(), places.end(), [&](auto const& a, auto const& b) { return MUTANT ? children[a.second] < children[b.second] : a < b; });")],
    ),
    "a negative sequence taken for a number": (
        "zookeeper/node_name.hpp",
        [("return negative ? exhausted_sequence : static_cast<std::uint32_t>(value);",
          "return negative && !MUTANT ? exhausted_sequence : static_cast<std::uint32_t>(negative ? 0x100000000U - value : value);")],
    ),
    "those of one sequence ordered by name": (QUEUE, [("one.czxid < czxid_ &&", "(MUTANT ? one.name < node_ : one.czxid < czxid_) &&")]),
    "watch set without a second look": (
        QUEUE,
        [("return r.what == answer::ok ? enter_waiting() : list();", "return MUTANT || r.what == answer::ok ? enter_waiting() : list();")],
    ),
    "first once the one before is gone": (
        QUEUE,
        [("if (state_ == state::watching || state_ == state::waiting) list();", 
          "if (state_ == state::waiting || (!MUTANT && state_ == state::watching)) return MUTANT ? grant() : list();")],
    ),
    # ZooKeeper: whose node it is.
    "create repeated blindly": (QUEUE, [("else if (in_doubt_)\n            search();", "else if (in_doubt_)\n            MUTANT ? create() : search();")]),
    "a lost node looked for without a barrier": (QUEUE, [("send(first, {request::kind::confirm});", "if (!MUTANT) send(first, {request::kind::confirm});")]),
    # ephemeralOwner is a second lock on a door: a new session has a new GUID, too. So here the GUID of the last session is looked for once
    # in the next one, where the servers may still keep the last session and its node.
    "ephemeralOwner not checked": (
        QUEUE,
        [("id_ = plan().tokens();\n        if (plan()",
          "if (MUTANT && id_ != owner_token{} && std::exchange(searched_, session()) != session()) return search();\n"
          "        if (MUTANT) searched_ = session();\n        id_ = plan().tokens();\n        if (plan()"),
         ("    state state_ = state::creating;", "    std::int64_t searched_ = 0;\n    state state_ = state::creating;"),
         ("if (r.stat.owner != session()) return start_over();", "if (!MUTANT && r.stat.owner != session()) return start_over();")],
    ),
    "the GUID kept in a new session": (
        QUEUE,
        [("id_ = plan().tokens();\n        if (plan()",
          "if (MUTANT && id_ != owner_token{}) return search();\n        id_ = plan().tokens();\n        if (plan()")],
    ),
    "a place taken without a look at the list": (
        QUEUE,
        [("if (plan().look_first && !may_read())", "if (plan().look_first && !may_read() && !MUTANT)")],
        ["interleaving"],
    ),
    "a container without a child left": (
        "zookeeper/erase_machine.hpp",
        [("clearing_ = !what_.containers.empty();", "clearing_ = !what_.containers.empty() && !MUTANT;")],
        ["interleaving", "zookeeper"],
    ),
    "a node at the lock's path removed without a look at whose it is": (
        "zookeeper/erase_machine.hpp",
        [("if (!ours) return finish(", "if (!ours && !MUTANT) return finish(")],
        ["zookeeper"],
    ),
    "a node in doubt not removed": ("zookeeper/acquirer.hpp", [("return made_ || in_doubt_ ||", "return made_ || (in_doubt_ && !MUTANT) ||")]),
    "delete not repeated": (
        "zookeeper/erase_machine.hpp",
        [("            stalled_ = true;\n            return;", "            if (MUTANT) return finish({});\n            stalled_ = true;\n            return;")],
    ),
}
