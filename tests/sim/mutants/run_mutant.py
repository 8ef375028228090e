#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks a copy of the library in one place and runs the simulation on it, which has to notice.

    run_mutant.py --list
    run_mutant.py NAME --source FOLDER --build FOLDER --objects FILE... [--compiler CXX] [--seeds N]

What the mutated header is part of is compiled with it; everything else is taken as the build has compiled it.

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


def included(source, include, found):
    """The headers here that a file includes, and what they include."""
    for name in re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)', source.read_text(encoding="utf-8"), re.MULTILINE):
        for path in (source.parent / name, include / name):
            if path.is_file() and path not in found:
                found.add(path)
                included(path, include, found)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=sorted(MUTANTS), metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--source", type=pathlib.Path, help="the root of the repository")
    parser.add_argument("--build", type=pathlib.Path, help="where to build; what is there is replaced")
    parser.add_argument("--objects", nargs="+", default=[], help="object files of the simulations, without the mutant")
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
    caught = any(notices(one, given, folder, folder / "include/holdfast" / header) for one in simulations)
    shutil.rmtree(folder)
    if not caught:
        print(f"the mutant survived: {given.name}")
    return 0 if caught else 1


SIMULATIONS = {
    "redis": ["sweep/scenario.cpp", "sweep/schedule.cpp", "sweep/shipped_clock.cpp", "sweep/main.cpp"],
    "zookeeper": ["sweep/zookeeper_scenario.cpp", "sweep/shipped_clock.cpp", "sweep/main.cpp"],
    "interleaving": ["zookeeper/schedule.cpp", "zookeeper/main.cpp"],
}
# What only reads options and prints: it has nothing of a machine.
UNTOUCHED = "sweep/main.cpp"


def built(objects, source):
    """The object file of a source."""
    fits = [one for one in objects if one.endswith(f"/{source}.o")]
    if len(fits) != 1:
        die(f"{len(fits)} of the objects are {source}'s, not one")
    return fits[0]


def notices(simulation, given, folder, header):
    """Whether a simulation, built with the mutant, finds something wrong."""
    begin = time.monotonic()
    sources = SIMULATIONS[simulation]
    paths = {one: given.source / "tests/sim" / one for one in sources}
    mutated = [one for one in sources if one != UNTOUCHED and header in included(paths[one], folder / "include", set())]
    if not mutated:
        die(f"{header.name} is no part of the simulation {simulation}")
    # Of an inline function the linker takes the first that it sees: that of the mutant.
    inputs = [paths[one] for one in mutated] + [built(given.objects, one) for one in sources if one not in mutated]
    program = folder / simulation
    compiled = subprocess.run([given.compiler, "-std=c++20", "-O1", "-w", f"-I{folder}/include", *inputs, "-pthread", "-o", program])
    if compiled.returncode != 0:
        die("the mutant does not compile")
    ready = time.monotonic()
    caught = any(fails([program, *run]) for run in runs(simulation, int(given.seeds)))
    print(f"{simulation}: {', '.join(mutated)} built in {ready - begin:.1f} s, ran for {time.monotonic() - ready:.1f} s")
    return caught


def runs(simulation, seeds):
    """The arguments of the runs that make up one simulation: a few seeds of each lock come before all the others of any."""
    if simulation == "interleaving":
        return [["--seeds", str(seeds)]]
    few = min(seeds, 500)
    parts = [["--first", "1", "--seeds", str(few)], ["--first", str(few + 1), "--seeds", str(seeds - few)]]
    machines = {"redis": ["redis", "redlock"], "zookeeper": ["zookeeper", "zookeeper-plain"]}[simulation]
    return [["--brief", "--machine", machine, *part] for part in parts for machine in machines]


def fails(command):
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    print(ran.stdout, end="")
    if ran.returncode not in (0, 1, 3):
        die("the simulation did not end by itself")
    return ran.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
