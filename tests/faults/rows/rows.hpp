// SPDX-License-Identifier: MIT
#pragma once

#include "../row.hpp"

// Each does what its row of the table says, with servers and processes of its own, none of which is left when it
// returns or throws. A file of rows has a namespace of its own for what it does not share.
namespace holdfast::faults {

void soak_redis(run_options const& run, findings& to);
void soak_redlock(run_options const& run, findings& to);

namespace paused_holder {
void go(run_options const& run, findings& to);
void leader(run_options const& run, findings& to);
}

namespace permits {
void go(run_options const& run, findings& to);
}

namespace readers {
void go(run_options const& run, findings& to);
}

namespace sides {
void go(run_options const& run, findings& to);
}

namespace jobs {
void go(run_options const& run, findings& to);
}

namespace operators {
void go(run_options const& run, findings& to);
}

namespace several {
void go(run_options const& run, findings& to);
}

namespace unknown_outcome {
void go(run_options const& run, findings& to);
}

namespace killed_holder {
void go(run_options const& run, findings& to);
void leader(run_options const& run, findings& to);
}

namespace masters_down {
void go(run_options const& run, findings& to);
}

namespace lost_memory {
void go(run_options const& run, findings& to);
}

namespace options_differ {
void go(run_options const& run, findings& to);
}

namespace poisoned_fences {
void go(run_options const& run, findings& to);
}

namespace wall_clocks {
void go(run_options const& run, findings& to);
}

namespace late_commands {
void go(run_options const& run, findings& to);
}

namespace reply_matrix {
void go(run_options const& run, findings& to);
}

namespace reply_matrix_redlock {
void go(run_options const& run, findings& to);
}

namespace reply_matrix_zookeeper {
void go(run_options const& run, findings& to);
}

namespace crowds {
void go(run_options const& run, findings& to);
}

namespace line {
void go(run_options const& run, findings& to);
void fair(run_options const& run, findings& to);
}

namespace deadlines {
void go(run_options const& run, findings& to);
}

namespace floods {
void go(run_options const& run, findings& to);
}

namespace bursts {
void go(run_options const& run, findings& to);
}

namespace names {
void go(run_options const& run, findings& to);
}

namespace lifecycle {
void go(run_options const& run, findings& to);
}

namespace zookeeper_lost_create {
void go(run_options const& run, findings& to);
}

namespace soak_zookeeper {
void go(run_options const& run, findings& to);
}

namespace zookeeper_ensemble {
void zookeeper_expiry(run_options const& run, findings& to);
void zookeeper_cut_off(run_options const& run, findings& to);
void zookeeper_leader_stopped(run_options const& run, findings& to);
}

}  // namespace holdfast::faults
