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
    parser.add_argument("--main", help="the object file of tests/sim/sweep/main.cpp; the sweep of ZooKeeper has its own")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--seeds", default="20000")
    given = parser.parse_args()
    if given.list:
        print("\n".join(MUTANTS))
        return 0

    folder = given.build / re.sub(r"\W+", "_", given.name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(given.source / "include", folder / "include")
    mutate(folder / "include", *MUTANTS[given.name])

    if MUTANTS[given.name][0].startswith("zookeeper/"):
        sweep = given.source / "tests/sim/zookeeper"
        sources = [f"{sweep}/schedule.cpp", f"{sweep}/main.cpp"]
    else:
        sweep = given.source / "tests/sim/sweep"
        sources = [f"{sweep}/scenario.cpp", f"{sweep}/schedule.cpp", given.main]
    begin = time.monotonic()
    compiled = subprocess.run(
        [given.compiler, "-std=c++20", "-O1", "-w", f"-I{folder}/include", *sources, "-pthread", "-o", f"{folder}/sweep"])
    if compiled.returncode != 0:
        die("the mutant does not compile")
    built = time.monotonic()
    ran = subprocess.run([f"{folder}/sweep", "--seeds", given.seeds], stdout=subprocess.PIPE, text=True)
    print(ran.stdout, end="")
    print(f"built in {built - begin:.1f} s, ran for {time.monotonic() - built:.1f} s")
    shutil.rmtree(folder)
    if ran.returncode == 0:
        print(f"the mutant survived: {given.name}")
        return 1
    if ran.returncode != 1:
        die("the simulation did not end by itself")
    return 0


if __name__ == "__main__":
    sys.exit(main())
