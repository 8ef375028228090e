// SPDX-License-Identifier: MIT
#pragma once

#include "../row.hpp"

namespace holdfast::faults {

// Each does what its row of the table says, with servers and processes of its own, none of which is left when it returns or throws.

void paused_holder(run_options const& run, findings& to);
void unknown_outcome(run_options const& run, findings& to);
void killed_holder(run_options const& run, findings& to);
void masters_down(run_options const& run, findings& to);
void lost_memory(run_options const& run, findings& to);
void wall_clocks(run_options const& run, findings& to);
void late_commands(run_options const& run, findings& to);
void reply_matrix(run_options const& run, findings& to);
void reply_matrix_redlock(run_options const& run, findings& to);
void reply_matrix_zookeeper(run_options const& run, findings& to);
void deadlines(run_options const& run, findings& to);
void names(run_options const& run, findings& to);
void lifecycle(run_options const& run, findings& to);
void soak_redis(run_options const& run, findings& to);
void soak_redlock(run_options const& run, findings& to);
void zookeeper_expiry(run_options const& run, findings& to);
void zookeeper_cut_off(run_options const& run, findings& to);
void zookeeper_leader_stopped(run_options const& run, findings& to);
void zookeeper_lost_create(run_options const& run, findings& to);
void soak_zookeeper(run_options const& run, findings& to);

}  // namespace holdfast::faults
