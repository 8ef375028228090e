#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks a copy of the library in one place and runs the simulation on it, which has to notice.

    run_mutant.py --list
    run_mutant.py NAME --source FOLDER --build FOLDER --main OBJECT [--compiler CXX] [--seeds N]

Exit status 0: the mutant was caught. 1: it survived. 2: it could not be made or built.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from mutants import MUTANTS  # noqa: E402


def die(why):
    print(why)
    sys.exit(2)


def mutate(include, header, replacements):
    path = include / "holdfast" / header
    text = path.read_text(encoding="utf-8")
    for old, new in replacements:
        if text.count(old) != 1:
            die(f"{header} has this text {text.count(old)} times, not once: {old}")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=sorted(MUTANTS), metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--source", type=pathlib.Path, help="the root of the repository")
    parser.add_argument("--build", type=pathlib.Path, help="where to build; what is there is replaced")
    parser.add_argument("--main", help="the object file of tests/sim/sweep/main.cpp")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--seeds", default="20000")
    given = parser.parse_args()
    if given.list:
        print("\n".join(MUTANTS))
        return 0

    header, replacements, *named = MUTANTS[given.name]
    simulations = named[0] if named else ["interleaving", "zookeeper"] if header.startswith("zookeeper/") else ["redis"]
    folder = given.build / re.sub(r"\W+", "_", given.name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(given.source / "include", folder / "include")
    mutate(folder / "include", header, replacements)
    caught = any(notices(one, given, folder) for one in simulations)
    shutil.rmtree(folder)
    if not caught:
        print(f"the mutant survived: {given.name}")
    return 0 if caught else 1


def notices(simulation, given, folder):
    """Whether a simulation, built with the mutant, finds something wrong."""
    sweep = given.source / "tests/sim/sweep"
    sources = {
        "redis": [sweep / "scenario.cpp", sweep / "schedule.cpp", sweep / "shipped_clock.cpp", given.main],
        "zookeeper": [sweep / "zookeeper_scenario.cpp", sweep / "shipped_clock.cpp", given.main],
        "interleaving": [given.source / "tests/sim/zookeeper/schedule.cpp", given.source / "tests/sim/zookeeper/main.cpp"],
    }[simulation]
    begin = time.monotonic()
    program = folder / simulation
    compiled = subprocess.run([given.compiler, "-std=c++20", "-O1", "-w", f"-I{folder}/include", *sources, "-pthread", "-o", program])
    if compiled.returncode != 0:
        die("the mutant does not compile")
    built = time.monotonic()
    brief = [] if simulation == "interleaving" else ["--brief"]
    ran = subprocess.run([program, "--seeds", given.seeds, *brief], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    print(ran.stdout, end="")
    print(f"{simulation}: built in {built - begin:.1f} s, ran for {time.monotonic() - built:.1f} s")
    if ran.returncode not in (0, 1, 3):
        die("the simulation did not end by itself")
    return ran.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
