// SPDX-License-Identifier: MIT
#include "rows.hpp"

namespace holdfast::faults {

std::vector<row> const& all_rows()
{
    constexpr auto redlock = place::store::redlock;
#ifdef HOLDFAST_TEST_ZOOKEEPER
    constexpr auto zookeeper = place::store::zookeeper;
#endif
    static std::vector<row> const rows{
        {"paused_holder", "no stale write is taken, at least a fifth refused; the first question is answered right; one loss callback within 50 ms",
         "the register does not check tokens", paused_holder},
        {"paused_holder_redlock", "the same of five masters", "the register does not check tokens", paused_holder, redlock},
        {"unknown_outcome", "never reported as not acquired while held; no orphan beyond ttl; K1", "a roll-back does not compare whose the lock is", unknown_outcome},
        {"unknown_outcome_redlock", "the same of five masters, at one or three of them", "a roll-back does not compare whose the lock is", unknown_outcome, redlock},
        {"killed_holder", "the lock of a dead holder is free within ttl + 100 ms", "the lock guards nothing", killed_holder},
        {"killed_holder_redlock", "the same of five masters", "the lock guards nothing", killed_holder, redlock},
        {"masters_down", "a minority down: no failure, calls within the node timeout + 50 ms; a majority: unavailable by the deadline, rolled back",
         "three masters are down where one or two are said to be", masters_down},
        {"lost_memory", "a master that lost its memory does not help to grant a lock that is held", "no restart guard", lost_memory},
        {"wall_clocks", "a client's: no effect; one of five masters': K1; those of a majority: documented, K3 holds", "three masters jump where one is said to",
         wall_clocks},
        {"late_commands", "a release or renewal that comes late leaves the successor untouched, and the caller is told", "what comes late does not compare",
         late_commands},
        {"late_commands_redlock", "the same of five masters", "what comes late does not compare", late_commands, redlock},
        {"reply_matrix", "a distinct condition for each answer; retried only where safe; a timed-out connection is never used again",
         "every answer is expected to be an unknown error", reply_matrix},
        {"deadlines", "every call returns by its deadline + one operation timeout", "the operation timeout is longer than said", deadlines},
        {"lifecycle", "nothing terminates or hangs, and what was held is freed", "a process that terminates", lifecycle},
        {"lifecycle_redlock", "the same of five masters", "a process that terminates", lifecycle, redlock},
        {"soak_redis", "K1 to K7; memory + 1 MiB at most, descriptors and threads + 0", "the lock guards nothing", soak_redis},
        {"soak_redlock", "the same", "the lock guards nothing", soak_redlock},
#ifdef HOLDFAST_TEST_ZOOKEEPER
        {"paused_holder_zookeeper", "no stale write is taken, at least a fifth refused; the first question is answered right; one loss callback within 50 ms",
         "the register does not check tokens", paused_holder, zookeeper},
        {"unknown_outcome_zookeeper", "never reported as not acquired while held; a node whose reply was lost is adopted or removed, never doubled; K1",
         "a roll-back does not compare whose the lock is", unknown_outcome, zookeeper},
        {"killed_holder_zookeeper", "the lock of a dead holder is free within the session timeout + 2 ticks + 200 ms", "the lock guards nothing", killed_holder,
         zookeeper},
        {"lifecycle_zookeeper", "nothing terminates or hangs, and what was held is freed", "a process that terminates", lifecycle, zookeeper},
        {"deadlines_zookeeper", "every call returns by its deadline + one operation timeout",
         "the operation timeout is longer than said", deadlines, zookeeper},
        {"zookeeper_expiry", "a session ended by a duplicate: the loss is announced, no stale write is taken", "the register does not check tokens",
         zookeeper_expiry},
        {"zookeeper_cut_off", "a holder that is cut off announces its loss before the rival's grant", "the lock guards nothing", zookeeper_cut_off},
        {"zookeeper_leader_stopped", "no two have the lock while a leader hangs and a new one is elected", "the lock guards nothing", zookeeper_leader_stopped},
        {"zookeeper_lost_create", "a node whose create was not answered is adopted or deleted, never doubled; one of an earlier session is never taken for ours",
         "a create that was not answered is sent again blindly", zookeeper_lost_create},
        {"soak_zookeeper", "K1 to K7; memory + 1 MiB at most, descriptors and threads + 0", "the lock guards nothing", soak_zookeeper},
#endif
    };
    return rows;
}

}  // namespace holdfast::faults
