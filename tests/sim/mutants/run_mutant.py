#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the simulation on the library with one mutant in it, which has to notice; or with none, where nothing may be found.

    run_mutant.py --list
    run_mutant.py NAME --sweep PROGRAM --interleavings PROGRAM [--seeds N]

Exit status 0: the mutant was caught; of "none": nothing was found. 1: it survived, or something was found without it. 2: it could not be run.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from mutants import MUTANTS  # noqa: E402

NONE = "none"


def die(why):
    print(why)
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=[NONE, *MUTANTS], metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--sweep", type=pathlib.Path, help="the schedules in virtual time, with every mutant")
    parser.add_argument("--interleavings", type=pathlib.Path, help="the queue in every order, with every mutant")
    parser.add_argument("--seeds", type=int, default=20000)
    given = parser.parse_args()
    if given.list:
        print("\n".join([NONE, *MUTANTS]))
        return 0
    if given.name == NONE:
        # Not so many: what the shipped headers do is shown elsewhere, here it is that the mutants change nothing until they are asked for.
        found = [one for one in ("redis", "zookeeper", "interleaving") if notices(one, given, 0, 500)]
        if found:
            print(f"found without a mutant: {', '.join(found)}")
        return 1 if found else 0

    header, _, *named = MUTANTS[given.name]
    simulations = named[0] if named else ["interleaving", "zookeeper"] if header.startswith("zookeeper/") else ["redis"]
    number = list(MUTANTS).index(given.name) + 1
    caught = any(notices(one, given, number, given.seeds) for one in simulations)
    if not caught:
        print(f"the mutant survived: {given.name}")
    return 0 if caught else 1


def notices(simulation, given, number, seeds):
    """Whether a simulation, with the mutant of this number, finds something wrong."""
    begin = time.monotonic()
    program = given.interleavings if simulation == "interleaving" else given.sweep
    environment = {**os.environ, "HOLDFAST_MUTANT": str(number)}
    caught = any(fails([program, *run], environment) for run in runs(simulation, seeds))
    print(f"{simulation}: ran for {time.monotonic() - begin:.1f} s")
    return caught


def runs(simulation, seeds):
    """The arguments of the runs that make up one simulation: a few seeds of each lock come before all the others of any."""
    if simulation == "interleaving":
        return [["--seeds", str(seeds)]]
    few = min(seeds, 500)
    parts = [["--first", "1", "--seeds", str(few)]]
    if seeds > few:
        parts.append(["--first", str(few + 1), "--seeds", str(seeds - few)])
    machines = {"redis": ["redis", "redlock"], "zookeeper": ["zookeeper", "zookeeper-plain"]}[simulation]
    return [["--brief", "--machine", machine, *part] for part in parts for machine in machines]


def fails(command, environment):
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    print(ran.stdout, end="")
    if ran.returncode not in (0, 1, 3):
        die("the simulation did not end by itself")
    return ran.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
