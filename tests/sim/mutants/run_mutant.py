#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the simulation on the library with one mutant in it, which has to notice; or with none, where all has to be as it is shipped.

    run_mutant.py --list
    run_mutant.py NAME --sweep PROGRAM --interleavings PROGRAM [--seeds N]
    run_mutant.py none --sweep PROGRAM --shipped PROGRAM

Exit status 0: the mutant was caught; of "none": the same happened. 1: it survived, or something else happened without it. 2: it could not be run.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from mutants import MUTANTS  # noqa: E402

NONE = "none"

# As many schedules as the sweeps of CMakeLists.txt run of them.
SLOW = ("semaphore", "multi", "operators", "election", "zookeeper-multi", "zookeeper-election")


def die(why):
    print(why)
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=[NONE, *MUTANTS], metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the names, each with the labels of its test")
    parser.add_argument("--sweep", type=pathlib.Path, help="the schedules in virtual time, with every mutant")
    parser.add_argument("--shipped", type=pathlib.Path, help="the schedules in virtual time, without mutants")
    parser.add_argument("--interleavings", type=pathlib.Path, help="the queue in every order, with every mutant")
    parser.add_argument("--seeds", type=int, default=20000)
    given = parser.parse_args()
    if given.list:
        print(NONE, *(f"{name}|{mutant.labels}" for name, mutant in MUTANTS.items()), sep="\n")
        return 0
    if given.name == NONE:
        ways = [hashes(program) for program in (given.sweep, given.shipped)]
        print("\n".join(" ".join(one) for one in ways))
        return 0 if ways[0] == ways[1] else 1

    blind = [one for one in MUTANTS[given.name].simulations if not notices(one, given)]
    if blind:
        print(f"the mutant survived: {given.name}, in {', '.join(blind)}")
    return 1 if blind else 0


def hashes(program):
    """What happened in some schedules of every lock."""
    ran = subprocess.run([program, "--seeds", "500"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found = re.findall(r"^trace hash +(.*)$", ran.stdout, re.MULTILINE)
    if ran.returncode != 0 or len(found) != 1:
        die(f"{program} ended with {ran.returncode}:\n{ran.stdout}")
    return found[0].split()


def notices(simulation, given):
    """Whether a simulation, with the mutant in it, finds something wrong."""
    begin = time.monotonic()
    program = given.interleavings if simulation == "interleaving" else given.sweep
    environment = {**os.environ, "HOLDFAST_MUTANT": given.name}
    caught = any(fails([program, *run], environment) for run in runs(simulation, given.seeds))
    print(f"{simulation}: ran for {time.monotonic() - begin:.1f} s")
    return caught


def runs(simulation, seeds):
    """The arguments of the runs that make up one simulation: a few seeds of each lock come before all the others of any."""
    if simulation == "interleaving":
        return [["--seeds", str(seeds)]]
    if simulation in SLOW:
        seeds //= 4
    few = min(seeds, 500)
    parts = [["--first", "1", "--seeds", str(few)], ["--first", str(few + 1), "--seeds", str(seeds - few)]]
    several = {"redis": ["redis", "redlock"], "zookeeper": ["zookeeper", "zookeeper-plain", "zookeeper-shared"]}
    machines = several.get(simulation, [simulation])
    return [["--brief", "--machine", machine, *part] for part in parts for machine in machines]


def fails(command, environment):
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    print(ran.stdout, end="")
    if ran.returncode not in (0, 1, 3):
        die("the simulation did not end by itself")
    return ran.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
