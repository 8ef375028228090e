// SPDX-License-Identifier: MIT
#include "rows.hpp"

namespace holdfast::faults {
namespace {

constexpr control_run no_tokens{"the register does not check tokens", "K3"};
constexpr control_run no_comparison{"a roll-back does not compare whose the lock is", "K1"};
constexpr control_run no_lock{"the lock guards nothing", "K1"};
constexpr control_run leaders_alone{"the lock guards nothing", "deposed"};
constexpr control_run with_gap{"one that goes over to the other side lets go first", "K1"};
constexpr control_run short_period{"a tenth of the ttl is asked for as the period", "K1"};
constexpr control_run broken_held{"a lock that was broken counts as held", "K1"};
constexpr control_run majority_down{"three masters are down where one or two are said to be", "minority: no failure"};
constexpr control_run no_guard{"no restart guard", "K1"};
constexpr control_run one_without_guard{"one client has no restart guard", "K1"};
constexpr control_run lower_fences{"what is written is less than what was there", "K2"};
constexpr control_run majority_jumps{"three masters jump where one is said to", "K1"};
constexpr control_run late_without_comparison{"what comes late does not compare", "the successor untouched"};
constexpr control_run longer_timeout{"the operation timeout is longer than said", "every call returns"};
constexpr control_run majority_floods{"three masters flood where one is said to", "leases"};
constexpr control_run longer_stop{"the process is stopped for longer than the ttl", "no lease is lost"};
constexpr control_run cut_names{"names end at their first zero byte", "refused before a server is asked"};
constexpr control_run terminates{"a process that terminates", "nothing terminates"};
constexpr control_run created_twice{"a create that was not answered is sent again blindly", "held once"};
constexpr control_run one_condition{"every answer is expected to be an unknown error", "a condition each"};
constexpr control_run one_condition_of_masters{"every answer is expected to be an unknown error",
                                               "granted by the others"};
constexpr control_run kept{"somebody keeps the lock", "K6"};
constexpr control_run reserved{"the lock is reserved for a waiter who does not come", "K6"};
constexpr control_run one_end{"every answer is expected to end the session", "a condition each"};

}  // namespace

std::vector<row> const& all_rows()
{
    constexpr auto redlock = place::store::redlock;
#ifdef HOLDFAST_TEST_ZOOKEEPER
    constexpr auto zookeeper = place::store::zookeeper;
#endif
    static std::vector<row> const rows{
        {"paused_holder",
         "no stale write is taken, at least a fifth refused; the first question is answered right; one loss callback within 50 ms",
         no_tokens, paused_holder::go},
        {"paused_holder_redlock", "the same of five masters", no_tokens, paused_holder::go, redlock},
        {"paused_leader", "the same of the terms of an election", no_tokens, paused_holder::leader},
        {"paused_leader_redlock", "the same of five masters", no_tokens, paused_holder::leader, redlock},
        {"permits",
         "while holders of permits are killed and stopped: no slot has two holders, its tokens increase, each that lives gets a permit",
         no_lock, permits::go},
        {"permits_redlock", "the same of five masters", no_lock, permits::go, redlock},
        {"readers",
         "while readers, writers and writers that wait are killed and stopped: a writer is alone, K2 to K5, K7; a dead one's lock is free within ttl + 100 ms, a dead writer that waited keeps readers out no longer than it would have waited; each that lives is served",
         no_lock, readers::go},
        {"readers_redlock", "the same of five masters", no_lock, readers::go, redlock},
        {"sides",
         "while writers that become readers, and readers that become the writer, are killed and stopped, the server stopped and emptied: no other writer comes in between; K1 to K5, K7; each that lives is served",
         with_gap, sides::go},
        {"sides_redlock", "the same of five masters, one of which is stopped, and one emptied", with_gap, sides::go,
         redlock},
        {"jobs",
         "while those are killed and stopped that run a job, and killed that have done it: it runs once in its period, and after a death when the lease has ended; K1, K2, K3, K7",
         short_period, jobs::go},
        {"jobs_redlock", "the same of five masters", short_period, jobs::go, redlock},
        {"operators",
         "holders are asked for the lock, and told so; those whose lock is broken are told their loss, and the next one has it; K1, K2, K3, K7, a broken lock being over",
         broken_held, operators::go},
        {"operators_redlock", "the same of five masters", broken_held, operators::go, redlock},
        {"several_locks",
         "several locks at once, named in any order; holders of some or all are killed and stopped, a server is stopped: each that lives is served; K1, K2, K3, K7 of each lock",
         no_lock, several::go},
        {"several_locks_redlock", "the same of five masters, and one Redis for the last lock", no_lock, several::go,
         redlock},
        {"unknown_outcome", "never reported as not acquired while held; no orphan beyond ttl; K1", no_comparison,
         unknown_outcome::go},
        {"unknown_outcome_redlock", "the same of five masters, at one or three of them", no_comparison,
         unknown_outcome::go, redlock},
        {"killed_holder", "the lock of a dead holder is free within ttl + 100 ms", no_lock, killed_holder::go},
        {"killed_holder_redlock", "the same of five masters", no_lock, killed_holder::go, redlock},
        {"killed_leader",
         "the same of the terms of an election; one that resigns is deposed before the next one is elected",
         leaders_alone, killed_holder::leader},
        {"killed_leader_redlock", "the same of five masters", leaders_alone, killed_holder::leader, redlock},
        {"masters_down",
         "a minority down: no failure, calls within the node timeout + 50 ms; a majority: unavailable by the deadline, rolled back",
         majority_down, masters_down::go},
        {"lost_memory", "a master that lost its memory does not help to grant a lock that is held", no_guard,
         lost_memory::go},
        {"options_differ",
         "clients with different options exclude each other while masters forget; a ttl above the guard is refused",
         one_without_guard, options_differ::go},
        {"poisoned_fences", "the lock works, its tokens increase, and the key is named", lower_fences,
         poisoned_fences::go},
        {"poisoned_fences_redlock",
         "one of five masters: the same, and no other takes it over; all: the key is named, and the lock works again",
         lower_fences, poisoned_fences::go, redlock},
        {"wall_clocks", "a client's: no effect; one of five masters': K1; those of a majority: documented, K3 holds",
         majority_jumps, wall_clocks::go},
        {"late_commands", "a release or renewal that comes late leaves the successor untouched, and the caller is told",
         late_without_comparison, late_commands::go},
        {"late_commands_redlock", "the same of five masters", late_without_comparison, late_commands::go, redlock},
        {"reply_matrix",
         "a distinct condition for each answer; retried only where safe; a silent connection is never used again",
         one_condition, reply_matrix::go},
        {"reply_matrix_redlock",
         "said by one of five masters: the lock is granted; by three: a distinct condition for each answer",
         one_condition_of_masters, reply_matrix_redlock::go, redlock},
        {"deadlines", "every call returns by its deadline + one operation timeout", longer_timeout, deadlines::go},
        {"deadlines_redlock", "the same of five masters, three of which do not answer", longer_timeout, deadlines::go,
         redlock},
        {"crowds",
         "no thread waits five times as long as all on average, or 25 times where processes hand on; who only polls gets its turns",
         kept, crowds::go},
        {"crowds_redlock", "the same of five masters", kept, crowds::go, redlock},
        {"line",
         "while waiters and holders are killed and stopped, the server stopped and emptied: each that lives gets the lock, who only polls, too; K1 to K5, K7",
         reserved, line::go},
        {"line_redlock", "the same of five masters, of which no two clocks agree", reserved, line::go, redlock},
        {"line_fair", "the same of one Redis and fair locks", reserved, line::fair},
        {"floods",
         "a master that sends without end, a publisher, a great value: calls return in time, leases are renewed, losses announced in time",
         majority_floods, floods::go},
        {"bursts", "leases that are all due at once, after a stop, an outage, a failover: none is lost", longer_stop,
         bursts::go},
        {"bursts_redlock", "the same of five masters", longer_stop, bursts::go, redlock},
        {"names", "refused before any I/O, or the name of a lock of its own", cut_names, names::go},
        {"names_redlock", "the same of five masters", cut_names, names::go, redlock},
        {"lifecycle", "nothing terminates or hangs, and what was held is freed", terminates, lifecycle::go},
        {"lifecycle_redlock", "the same of five masters", terminates, lifecycle::go, redlock},
        {"soak_redis", "K1 to K7; memory + 1 MiB at most, descriptors and threads + 0", no_lock, soak_redis},
        {"soak_redlock", "the same", no_lock, soak_redlock},
#ifdef HOLDFAST_TEST_ZOOKEEPER
        {"paused_holder_zookeeper",
         "no stale write is taken, at least a fifth refused; the first question is answered right; one loss callback within 50 ms",
         no_tokens, paused_holder::go, zookeeper},
        {"paused_leader_zookeeper", "the same of the terms of an election", no_tokens, paused_holder::leader,
         zookeeper},
        {"permits_zookeeper",
         "while holders of permits are killed and stopped: no slot has two holders, its tokens increase, each that lives gets a permit",
         no_lock, permits::go, zookeeper},
        {"readers_zookeeper",
         "while readers, writers and writers that wait are killed and stopped: a writer is alone, K2 to K5, K7; the place of a dead one is free within the session timeout + 2 ticks + 200 ms; each that lives is served",
         no_lock, readers::go, zookeeper},
        {"sides_zookeeper",
         "while writers that become readers, and readers that become the writer, are killed and stopped, the server stopped: no other writer comes in between; K1 to K5, K7; each that lives is served",
         with_gap, sides::go, zookeeper},
        {"jobs_zookeeper",
         "while those are killed and stopped that run a job: it runs once in its period, and after a death when the session has ended; K1, K2, K3, K7",
         short_period, jobs::go, zookeeper},
        {"operators_zookeeper",
         "holders are asked for the lock, and told so; those whose lock is broken are told their loss, and the next one has it; K1, K2, K3, K7, a broken lock being over",
         broken_held, operators::go, zookeeper},
        {"several_locks_zookeeper",
         "several locks at once, named in any order; holders of some or all are killed and stopped, the Redis of the last lock is stopped: each that lives is served; K1, K2, K3, K7 of each lock",
         no_lock, several::go, zookeeper},
        {"unknown_outcome_zookeeper",
         "never reported as not acquired while held; a node whose reply was lost is adopted or removed, never doubled; K1",
         no_comparison, unknown_outcome::go, zookeeper},
        {"killed_holder_zookeeper", "the lock of a dead holder is free within the session timeout + 2 ticks + 200 ms",
         no_lock, killed_holder::go, zookeeper},
        {"killed_leader_zookeeper",
         "the same of the terms of an election; one that resigns is deposed before the next one is elected",
         leaders_alone, killed_holder::leader, zookeeper},
        {"lifecycle_zookeeper", "nothing terminates or hangs, and what was held is freed", terminates, lifecycle::go,
         zookeeper},
        {"reply_matrix_zookeeper", "a distinct condition for each answer; tried again only where safe; never doubled",
         one_end, reply_matrix_zookeeper::go, zookeeper},
        {"deadlines_zookeeper", "every call returns by its deadline + one operation timeout", longer_timeout,
         deadlines::go, zookeeper},
        {"crowds_zookeeper",
         "no thread waits five times as long as all on average, or 25 times where processes hand on", kept, crowds::go,
         zookeeper},
        {"names_zookeeper", "refused before any I/O, or the name of a lock of its own", cut_names, names::go,
         zookeeper},
        {"zookeeper_expiry", "a session ended by a duplicate: the loss is announced, no stale write is taken",
         no_tokens, zookeeper_ensemble::zookeeper_expiry},
        {"zookeeper_cut_off", "a holder that is cut off announces its loss before the rival's grant", no_lock,
         zookeeper_ensemble::zookeeper_cut_off},
        {"zookeeper_leader_stopped", "no two have the lock while a leader hangs and a new one is elected", no_lock,
         zookeeper_ensemble::zookeeper_leader_stopped},
        {"zookeeper_lost_create",
         "a node whose create was not answered is adopted or deleted, never doubled; one of an earlier session is never taken for ours",
         created_twice, zookeeper_lost_create::go},
        {"soak_zookeeper", "K1 to K7; memory + 1 MiB at most, descriptors and threads + 0", no_lock,
         soak_zookeeper::go},
#endif
    };
    return rows;
}

}  // namespace holdfast::faults
