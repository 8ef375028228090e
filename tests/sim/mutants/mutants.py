# SPDX-License-Identifier: MIT
"""The mutants: ways to break the library that the simulation has to notice.

A header says which line a mutant changes, by a comment after its code, or alone on the line before it:

    if (now - seen.started < guard_) return errc::restarted_recently;  // mutant: no restart guard

This table says, for each name, which simulations all have to notice and what becomes of the line: a pair is a text in it
and what replaces that; a text alone is the new line, in which LINE is the old one. All mutants are in one program, and
MUTANT is whether this one is asked for: without it, the line has to do what it did. A mutant that changes several lines
has a marker on each and a change for each, in their order. Those of one line are put in one after the other, and each
has to leave the text that the next one replaces.
"""

import typing


class Mutant(typing.NamedTuple):
    simulations: tuple
    changes: tuple
    labels: str


def mutant(simulations, *changes, labels=""):
    """`labels`: of its test, with spaces between them: the lessons of tests/lessons.md that it shows."""
    return Mutant(simulations, changes, labels)


# One and several masters.
REDIS = ("redis",)
# Readers and writers, on one and on several masters.
SHARED = ("shared",)
# Those who wait in line for it.
LINE_OF = ("line",)
# The same, who react late.
LATE = ("late",)
# What is made of locks.
SEMAPHORE = ("semaphore",)
ONE_REQUEST = ("multi",)
MULTI = ONE_REQUEST + ("zookeeper-multi",)
ELECTION = ("election", "zookeeper-election")
# A lock that operators break.
OPERATORS = ("operators",)
# Both forms of a lock, in time.
ZOOKEEPER = ("zookeeper",)
# Permits there.
ZOOKEEPER_SEMAPHORE = ("zookeeper-semaphore",)
# The queue, in every order.
ORDER = ("interleaving",)
QUEUE = ORDER + ZOOKEEPER

MUTANTS = {
    # How many, and until when.
    "quorum of 2 of 5": mutant(REDIS, ("majority_of(nodes_)", "(MUTANT && nodes_ >= 5 ? 2 : majority_of(nodes_))")),
    "renewal by 2 of 5": mutant(
        REDIS, ("majority_of(nodes_.size)", "(MUTANT && nodes_.size >= 5 ? 2 : majority_of(nodes_.size))"), labels="lesson-20"
    ),
    "validity counted from the end": mutant(
        REDIS, ("round_.validity()", "MUTANT ? valid_until(now, set_.request.ttl) : round_.validity()"),
        labels="lesson-3 lesson-19",
    ),
    "a node waited for twice as long": mutant(
        REDIS, ("= node_timeout,", "= MUTANT ? 2 * node_timeout : node_timeout,")
    ),
    "no validity check": mutant(REDIS, ("round_.usable(now)", "(MUTANT || round_.usable(now))"), labels="lesson-3"),
    "renewed validity counted from the end": mutant(REDIS, ("(sent_,", "(MUTANT ? now_ : sent_,"), labels="lesson-19"),
    "no drift margin": mutant(REDIS, "if (MUTANT) return {}; LINE", labels="lesson-3"),
    "a session counted on for twice its timeout": mutant(
        ZOOKEEPER,
        ("std::min(settled_ + timeout_ - drift(timeout_), least)",
         "(MUTANT ? settled_ + timeout_ * 2 : std::min(settled_ + timeout_ - drift(timeout_), least))"),
    ),
    # A session that is used asks a quorum, and what is sent behind a write is answered behind it. So here it asks its server
    # alone, too.
    "a follower's word taken for a quorum's": mutant(
        ZOOKEEPER, ("true", "!MUTANT"), ("active = ", "active = !MUTANT && "), ("(by_quorum)", "(by_quorum || MUTANT)")
    ),
    "a leader that knows at once whom a follower heard of": mutant(
        ZOOKEEPER, ("sent - timeout_ / 4", "(MUTANT ? sent : sent - timeout_ / 4)")
    ),
    "a write taken for word of its session": mutant(ZOOKEEPER, "if (MUTANT) settled_ = sent; LINE"),
    "wall-clock validity": mutant(
        REDIS, ("CLOCK_BOOTTIME, &t", "MUTANT ? CLOCK_REALTIME : CLOCK_BOOTTIME, &t"), labels="lesson-6"
    ),
    "a clock that stands still while the machine sleeps": mutant(
        REDIS, ("CLOCK_BOOTTIME, &t", "MUTANT ? CLOCK_MONOTONIC : CLOCK_BOOTTIME, &t")
    ),
    "wall-clock validity of a session": mutant(
        ZOOKEEPER, ("CLOCK_BOOTTIME, &t", "MUTANT ? CLOCK_REALTIME : CLOCK_BOOTTIME, &t")
    ),
    # Renewal.
    "renewal stops at the first error": mutant(
        REDIS, "if (MUTANT) renew_at_ = boot_clock::time_point::max(); else LINE", labels="lesson-9"
    ),
    "a lock kept for its ttl only": mutant(REDIS, ("rest)", "MUTANT ? first_ttl_ : rest)")),
    "a no counted as a yes": mutant(REDIS, ("refused_.add(", "(MUTANT ? applied_ : refused_).add("), labels="lesson-20"),
    "min_hold ignored": mutant(
        REDIS + ZOOKEEPER, ("options_->min_hold", "MUTANT ? options_->min_hold * 0 : options_->min_hold")
    ),
    "stop_margin ignored": mutant(
        REDIS + SHARED + ZOOKEEPER + MULTI,
        ("options_->stop_margin", "(MUTANT ? options_->stop_margin * 0 : options_->stop_margin)"),
    ),
    # A vote that a renewal takes back.
    "a lost vote taken from another": mutant(REDIS, ("if (found", "if (!MUTANT && found"), labels="lesson-20"),
    "a lost vote taken back from who has none": mutant(REDIS, ("!may_vote(now)", "(MUTANT || !may_vote(now))")),
    # What is under way to a node.
    "a refused roll-back sent again after the next acquire": mutant(REDIS, ("!too_late", "(MUTANT || !too_late)")),
    "a script that the server forgot not sent again": mutant(REDIS, ("errc::no_script &&", "errc::no_script && !MUTANT &&")),
    "a lost acquire undone after its repetition": mutant(
        REDIS, "if (!MUTANT) LINE", ("if (", "if (!MUTANT && ")
    ),
    # Whose it is.
    "delete without compare": mutant(
        REDIS, ("if (!ours &&", "if (!MUTANT && !ours &&"), labels="lesson-2"
    ),
    "extend true on a missing key": mutant(
        REDIS, "if (MUTANT && found == keys_.end()) return redis::answer::yes(); LINE", labels="lesson-4 lesson-20"
    ),
    "extend without compare": mutant(
        REDIS, ("if (!ours)", "if (MUTANT ? found == keys_.end() : !ours)"), labels="lesson-4 lesson-10"
    ),
    "token used again": mutant(
        REDIS, ("(step.new_token)", "(step.new_token && !(MUTANT && token_ != owner_token{}))"), labels="lesson-7"
    ),
    "failed round not rolled back": mutant(REDIS, ("if (", "if (!MUTANT && "), labels="lesson-2 lesson-4"),
    # Fences.
    "fence without write-back": mutant(REDIS, ("if (", "if (!MUTANT && ")),
    "least fence instead of the greatest": mutant(
        REDIS,
        ("std::max(fence_, v.fence)",
         "(MUTANT && fence_ != 0 ? std::min(fence_, v.fence) : std::max(fence_, v.fence))"),
    ),
    "fences of an old snapshot believed": mutant(REDIS, "if (MUTANT) return 1; LINE"),
    "a fence believed however far ahead": mutant(REDIS, ("return ", "return !MUTANT && ")),
    "a fence passed on however far ahead": mutant(
        REDIS, ("foreign(c, c.value, t) || !counts(c, t)", "(!MUTANT && (foreign(c, c.value, t) || !counts(c, t)))")
    ),
    "a lost fence begun at the clock": mutant(
        REDIS, ("most(c, t + c.max_lead)", "MUTANT ? clock : most(c, t + c.max_lead)")
    ),
    "a reader with the token of the writer before it": mutant(
        SHARED,
        "LINE if (MUTANT && redis::mode_of(c) == access::shared && usable(c, t) && value(c.keys->fence().text()) != 0)"
        " return granted(value(c.keys->fence().text()), false);",
    ),
    "readers whose tokens do not count": mutant(
        SHARED,
        ("write_fence(c, last + c.batch, t)",
         "MUTANT && redis::mode_of(c) == access::shared ? last + c.batch : write_fence(c, last + c.batch, t)"),
    ),
    # Whose turn it is.
    "a reservation that grants": mutant(
        REDIS + LINE_OF, ("!ours)", "!ours && !(MUTANT && lines_.reserved_for(name, c.waiter)))")
    ),
    "a free lock for whoever comes": mutant(LINE_OF, ("if (", "if (!MUTANT && ")),
    "a roll-back that forgets to register again": mutant(LINE_OF, ("step.stays", "!MUTANT && step.stays")),
    "no leave at the end": mutant(
        REDIS + SEMAPHORE,
        ("if (step.done)", "if (step.done && !MUTANT)"),
    ),
    "a queue forgotten whose node did not answer in time": mutant(LINE_OF, ("c.score != 0", "c.score != 0 && !MUTANT")),
    "a late refusal followed by no leave": mutant(
        LINE_OF, ("!step.done->error", "(!step.done->error && !MUTANT)")
    ),
    "a waiter that is gone ends the search": mutant(LINE_OF, "if (MUTANT && told == 0) return; LINE"),
    "a place by the client's own clock": mutant(
        LINE_OF,
        ("votes_.latest(entered)",
         "(MUTANT ? static_cast<std::uint64_t>(entered.time_since_epoch().count() / 1000) + 1'700'000'000'000'000U"
         " : votes_.latest(entered))"),
    ),
    "a later place of another forgotten": mutant(LINE_OF, ("votes_.heard", "if (!MUTANT) votes_.heard")),
    "a try that overtakes": mutant(LINE_OF, ("options.fair", "options.fair && !MUTANT")),
    "a waiter that is not called looks late": mutant(LINE_OF, ("= first_look", "= (MUTANT ? 10 : 1) * first_look")),
    "a release that calls everybody": mutant(LINE_OF, "if (MUTANT) continue; LINE"),
    # Who may vote.
    "no restart guard": mutant(REDIS, ("if (", "if (!MUTANT && ")),
    "no restart guard for readers": mutant(
        SHARED, ("transport_.may_vote(node, now)",
                 "(MUTANT && keys_->mode() == access::shared ? std::error_code{} : transport_.may_vote(node, now))")
    ),
    # Who may have it together.
    "read granted beside a writer": mutant(SHARED, ("why = left", "if (!MUTANT) why = left")),
    "write that looks only at its own kind": mutant(
        SHARED, ("(!value.empty())", "(!value.empty() && !(MUTANT && readers))")
    ),
    "a reader that becomes a writer beside others": mutant(
        SHARED, ("(sole)", "(sole || (MUTANT && readers && c.has_beside))")
    ),
    "a writer prolonged by its reader": mutant(SHARED, ("return ", "return !MUTANT && ")),
    "a writer beside a reader not prolonged by itself": mutant(SHARED, ("if (", "if (!MUTANT && ")),
    "a release that frees what is another's": mutant(
        SHARED, ("(ours)", "(ours || (MUTANT && found != keys_.end()))")
    ),
    "a writer that was called let in beside others": mutant(
        SHARED, ("(!refused)", "(!refused || (MUTANT && lines_.reserved_for(c.keys->lock, c.waiter)))")
    ),
    # A hold that becomes one of the other mode: what it leaves goes when the other is there.
    "a writer that lets go before it reads": mutant(
        SHARED,
        "LINE if (MUTANT && ask.has_beside && keys_->mode() == access::shared) {"
        " ask.has_beside = false;"
        " auto before = make(command::verb::release);"
        " before.keys = std::make_shared<lock_keys const>(keys_->name(), \"\", access::exclusive);"
        " before.token = *request_.beside;"
        " step.ask.for_each([&](unsigned node) { transport_.send(node, before, nullptr); }); }",
    ),
    "a writer that leaves with its own reader": mutant(SHARED, ("= beside_", "= !MUTANT && beside_")),
    # A key that was deleted is no reader's any more.
    "a renewal that makes a reader's record anew": mutant(
        SHARED,
        ("(!ours && (",
         "(!ours && !(MUTANT && shared && (value.empty() || value == read_phase::reserved)) && ("),
    ),
    # Whose phase it is.
    "a writer's mark forgotten": mutant(SHARED, "if (!MUTANT) LINE"),
    "a mark shortened by a writer that waits for less": mutant(
        SHARED, ("std::max(writer_waits_until_, mark)", "MUTANT ? mark : std::max(writer_waits_until_, mark)")
    ),
    "no turn for readers": mutant(SHARED, ("if (", "if (!MUTANT && ")),
    "a guard as long as the client's own ttl": mutant(
        REDIS, "if (MUTANT && options.restart_guard.count() != 0) return options.longest_ttl; LINE"
    ),
    "clocks not compared": mutant(REDIS, "if (MUTANT && seen.near > 0) return {}; LINE"),
    "the time that a greeting took left out": mutant(REDIS, ("doubt = ", "doubt = MUTANT ? microseconds{} : ")),
    "one that missed its turn put behind all others": mutant(LATE, ("(came,", "(MUTANT ? clock : came,")),
    # Its place is lost only if it is not in line any more, as it was called, and comes back late.
    "one that missed its turn has lost its place": mutant(
        LATE,
        ("clock - longest_ago",
         "MUTANT && clock - came > 60'000"
         " && std::none_of(lines_[c.keys->lock].who.begin(), lines_[c.keys->lock].who.end(),"
         " [&](auto const& one) { return one.second == c.waiter; }) ? clock : clock - longest_ago"),
    ),
    "one that asks again as if it came now": mutant(LATE, ("entered_at_", "MUTANT ? transport_.now() : entered_at_")),
    # Permits. A majority of servers, each of which admits as many as there are, admits more: what is asked for is any
    # slot that this server has free.
    "permits counted by each server": mutant(
        SEMAPHORE,
        "if (MUTANT && c.keys->lock.find('#') != std::string::npos && c.keys->lock.back() <= '9') {"
        " auto const base = c.keys->lock.substr(0, c.keys->lock.find('#') + 1);"
        " last_slot_ = std::max(last_slot_, std::stoul(c.keys->lock.substr(base.size())));"
        " std::string to;"
        " for (unsigned long slot = 0; slot <= last_slot_; ++slot) {"
        " auto const holder = get(base + std::to_string(slot), now);"
        " if (holder == c.token.view()) { to = base + std::to_string(slot); break; }"
        " if (!holder && to.empty() && c.what == redis::command::verb::acquire) to = base + std::to_string(slot); }"
        " if (!to.empty() && to != c.keys->lock) {"
        " auto other = c; other.keys = std::make_shared<redis::lock_keys const>(to);"
        " return execute(other, now, call); } } LINE",
        "LINE unsigned long last_slot_ = 0;",
    ),
    "two permits granted at once and both kept": mutant(SEMAPHORE, ("if (held", "if (!MUTANT && held")),
    "a permit that came as the time passed forgotten": mutant(
        SEMAPHORE, ("if (won_)", "if (won_ && !(MUTANT && timed_out_))")
    ),
    "a number of permits that was changed not compared": mutant(SEMAPHORE, ("!other || ours", "MUTANT || !other || ours")),
    "a number of permits that ends before those that are held": mutant(SEMAPHORE, "if (!MUTANT) LINE"),
    "permits collected without a turn": mutant(SEMAPHORE, ("n_ > 1", "!MUTANT && n_ > 1")),
    "too few permits kept": mutant(SEMAPHORE, "if (MUTANT) taken_.clear(); LINE"),
    "a wait for one slot only": mutant(SEMAPHORE, ("size()", "(MUTANT ? 1 : size())")),
    # Several locks.
    "several locks taken in the order in which they were named": mutant(MULTI, "if (!MUTANT) LINE"),
    "what was taken in vain kept": mutant(MULTI, "if (!MUTANT) LINE"),
    "a hold that goes on without one of its locks": mutant(
        MULTI, "if (MUTANT) return parts_.front().still_held(); LINE"
    ),
    "several locks granted although one of them is held": mutant(ONE_REQUEST, ("taken ||", "(taken && !MUTANT) ||")),
    "the leases of several counted from the answer": mutant(ONE_REQUEST, ("sent_at_", "MUTANT ? now : sent_at_")),
    # What a holder is told.
    "a loss that its holder is not told": mutant(
        MULTI, "if (MUTANT) static_cast<void>(mark_lost()); else LINE"
    ),
    "a renewal that fails without a warning": mutant(MULTI, "if (MUTANT) return {}; LINE"),
    "a renewal that is of no use taken for one that succeeds": mutant(
        ("zookeeper-multi",), "if (MUTANT) return false; LINE"
    ),
    "a risk of one of several locks that is not that of all": mutant(MULTI, ("if (of)", "if (of && !MUTANT)")),
    "a warning that outlasts the renewal after it": mutant(MULTI, "if (MUTANT) return; LINE"),
    # What operators do to a lock.
    "a forced release that calls no waiter": mutant(OPERATORS, ("if (", "if (!MUTANT && ")),
    "a holder that is not on all masters not named": mutant(OPERATORS, ("majority()", "(MUTANT ? size() : majority())")),
    "a lock that is not on all masters not listed": mutant(OPERATORS, ("majority()", "(MUTANT ? size() : majority())")),
    "a free lock shown as held": mutant(
        OPERATORS,
        ("redis::answer::no()", "MUTANT ? with(std::make_shared<redis::node_report>()) : redis::answer::no()"),
    ),
    "a lost answer taken for a question that was not asked": mutant(
        OPERATORS, ("if (unknown)", "if (unknown && !MUTANT)"), "if (!MUTANT) LINE"
    ),
    # A job that runs once.
    "a job whose period is not kept": mutant(OPERATORS, "if (!MUTANT) LINE"),
    "a job that has run not counted": mutant(OPERATORS, "if (!MUTANT) LINE"),
    # An election.
    "elected before the one before is deposed": mutant(ELECTION, "LINE if (MUTANT) give_back();"),
    "the end of a term awaited without a timer": mutant(
        ELECTION,
        ("saturating_add(boot_clock::now(), of->remaining())",
         "(MUTANT ? boot_clock::time_point::max() : saturating_add(boot_clock::now(), of->remaining()))"),
    ),
    "a term that outlives its lease": mutant(ELECTION, ("- margin_", "+ (MUTANT ? margin_ : -margin_)")),
    # ZooKeeper: renewal.
    "a renewal that waits for longer than its lease": mutant(
        ("zookeeper-multi",), ("left - left / 4", "MUTANT ? boot_clock::duration{ttl} : left - left / 4")
    ),
    # ZooKeeper: who is first.
    "sequence compared as text": mutant(
        QUEUE,
        ("places.end()",
         "places.end(), [&](auto const& a, auto const& b)"
         " { return MUTANT ? children[a.second] < children[b.second] : a < b; }"),
        labels="lesson-16",
    ),
    "a negative sequence taken for a number": mutant(
        QUEUE, "if (MUTANT && negative) return name_end{static_cast<std::uint32_t>(0x100000000U - value), mode, false}; LINE"
    ),
    "those of one sequence ordered by name": mutant(
        QUEUE, ("a.czxid < b.czxid", "(MUTANT ? a.name < b.name : a.czxid < b.czxid)")
    ),
    # Beside a reader that holds, it holds, too; the writer waits for that reader only.
    "a reader that passes a waiting writer": mutant(
        QUEUE, ("if (", "if ((MUTANT && self->mode == access::shared && &one != &line.front()) || "), labels="lesson-16"
    ),
    "a writer that looks at writers only": mutant(
        QUEUE, ("return ", "return MUTANT ? a != access::shared : "), labels="lesson-16"
    ),
    "a hold converted at the end of the line": mutant(
        QUEUE, ("number)", "MUTANT ? exhausted_sequence - 1 : number)"), labels="lesson-16"
    ),
    "a writer whose node goes before its reader's is there": mutant(
        ORDER + ("zookeeper-shared",),
        "if (MUTANT && to_ == access::shared) send(second, {request::kind::erase, held_.node}); LINE",
        ("(!still_there)", "(!still_there && !MUTANT)"),
    ),
    "a reader that becomes a writer without a second look": mutant(
        QUEUE, "LINE if (MUTANT && to_ == access::exclusive) return grant();"
    ),
    "a writer whose token is greater than of those that waited before": mutant(
        QUEUE, ("if (", "if (!MUTANT && ")
    ),
    "a converted node taken for one that waits": mutant(ORDER, ("!one.converted", "(MUTANT || !one.converted)")),
    "the token of a converted hold is its own node's": mutant(
        QUEUE, "if (MUTANT) return first_token_of(czxid_); LINE"
    ),
    "granted without a node that was replaced": mutant(ORDER, ("if (gone", "if (!MUTANT && gone")),
    "watch set without a second look": mutant(QUEUE, ("return ", "return MUTANT || ")),
    "first once the one before is gone": mutant(QUEUE, "if (MUTANT && state_ == state::waiting) return grant(); LINE"),
    # ZooKeeper: permits.
    "a permit that does not count its own node": mutant(
        ZOOKEEPER_SEMAPHORE, ("<= max_", "<= max_ + (MUTANT ? 1 : 0)")
    ),
    "a place in the queue for permits that ends with its lease": mutant(ZOOKEEPER_SEMAPHORE, "if (!MUTANT) LINE"),
    "an earlier number that is not yet agreed ignored": mutant(ZOOKEEPER_SEMAPHORE, ("true", "!MUTANT")),
    "a change of the number that leaves the marks of others": mutant(
        ZOOKEEPER_SEMAPHORE, ("replaces() ?", "replaces() && !MUTANT ?")
    ),
    "a mark that was removed not missed": mutant(ZOOKEEPER_SEMAPHORE, ("gone();", "if (!MUTANT) gone();")),
    # ZooKeeper: what operators do.
    "a force that is repeated deletes whichever node is first": mutant(
        ZOOKEEPER, ("node != first_", "node != first_ && !MUTANT")
    ),
    "a holder whose node was deleted is not told": mutant(
        ZOOKEEPER,
        ("r.what == answer::no_node || r.stat.czxid != node->what.czxid",
         "!MUTANT && (r.what == answer::no_node || r.stat.czxid != node->what.czxid)"),
    ),
    # ZooKeeper: whose node it is.
    "create repeated blindly": mutant(QUEUE, ("search()", "MUTANT ? create() : search()"), labels="lesson-1"),
    "a lost node looked for without a barrier": mutant(QUEUE, "if (!MUTANT) LINE"),
    # ephemeralOwner is a second lock on a door: a new session has a new GUID, too. So here the GUID of the last session
    # is looked for once in the next one, where the servers may still keep the last session and its node.
    "ephemeralOwner not checked": mutant(
        ORDER,
        "if (MUTANT && id_ != owner_token{} && std::exchange(searched_, session()) != session()) return search();"
        " if (MUTANT) searched_ = session(); LINE",
        "LINE std::int64_t searched_ = 0;",
        ("if (r.", "if (!MUTANT && r."),
        labels="lesson-14",
    ),
    "the GUID kept in a new session": mutant(
        ORDER, "if (MUTANT && id_ != owner_token{}) return search(); LINE", labels="lesson-14"
    ),
    "a place taken without a look at the list": mutant(ORDER, ("plan().look_first", "plan().look_first && !MUTANT")),
    "a container without a child left": mutant(ORDER, ("clearing_ = ", "clearing_ = !MUTANT && ")),
    "a node at the lock's path removed without a look at whose it is": mutant(
        ZOOKEEPER, ("(!ours)", "(!ours && !MUTANT)")
    ),
    "a node in doubt not removed": mutant(QUEUE, ("in_doubt_", "(in_doubt_ && !MUTANT)"), labels="lesson-15"),
    "delete not repeated": mutant(QUEUE, "if (MUTANT) return finish({}); LINE", labels="lesson-15"),
}
