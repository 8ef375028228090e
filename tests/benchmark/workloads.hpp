// SPDX-License-Identifier: MIT
#pragma once

#include "report.hpp"

#include <string>

namespace holdfast::benchmark {

struct run_options {
    bool quick = false;                 ///< a look whether it works; too short for figures
    std::string rivals;                 ///< the folder with those of other languages; empty: they are not there
    std::string redis_plus_plus_rival;  ///< the program of a crowd; empty: it is not there
    std::string curator;                ///< the Java program of a crowd with its mutex; empty: it is not there
    std::string redis_plus_plus;  ///< how the compiler is told where redis-plus-plus is: "-I…"; empty: it is not there
};

// A workload starts the servers that it needs, and adds what it has measured to the report.

void one_redis(run_options const& options, report& to);          ///< P1
void five_masters(run_options const& options, report& to);       ///< P2
void distant_masters(run_options const& options, report& to);    ///< P3
void many_threads(run_options const& options, report& to);       ///< P4
void one_lock(run_options const& options, report& to);           ///< P5
void handover(run_options const& options, report& to);           ///< P6
void crowd(run_options const& options, report& to);              ///< P7
void crowd_family(run_options const& options, report& to);       ///< P7 of the other locks of the family
void many_locks(run_options const& options, report& to);         ///< P8
void one_zookeeper(run_options const& options, report& to);      ///< P9; where there is a C client
void zookeeper_waiters(run_options const& options, report& to);  ///< P10; the same
void zookeeper_crowd(run_options const& options, report& to);    ///< P10 against Curator; the same
void in_flight(run_options const& options, report& to);          ///< P12; where there is an Asio
void idle(run_options const& options, report& to);               ///< P13
void restart(run_options const& options, report& to);            ///< P14
void compile_time(run_options const& options, report& to);       ///< P11

}  // namespace holdfast::benchmark
