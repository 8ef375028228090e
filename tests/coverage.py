# SPDX-License-Identifier: MIT
"""Prints what coverage.sh has found out: lines and branches reached, by folder.

    coverage.py REPORT.json [--lines FOLDER]

Ends with 1 where a folder of `REQUIRED` has less than 95 % of its lines reached.
"""

import argparse
import collections
import json
import sys

LEAST = 95.0
REQUIRED = ["core", "lock", "quorum", "zookeeper machines"]


def group_of(path):
    """Returns the group of a header, given its path below include/holdfast."""
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".hpp")
    # All of quorum is machines, and so are the recipes of ZooKeeper.
    machine = folder != "quorum" and stem.endswith(("_machine", "_recipe"))
    return f"{folder} machines" if machine else folder or "umbrella headers"


def count(report):
    """Returns {group: {path: (lines, branches)}}, where lines is {number: count} and branches is [count]."""
    groups = collections.defaultdict(dict)
    for file in report["files"]:
        path = file["file"].partition("include/holdfast/")[2]
        lines, branches = {}, []
        for line in file["lines"]:
            if line.get("gcovr/noncode"):
                continue
            lines[line["line_number"]] = line["count"]
            branches += [branch["count"] for branch in line["branches"] if not branch.get("throw")]
        if path and lines:
            groups[group_of(path)][path] = (lines, branches)
    return groups


def share(counts):
    counts = list(counts)
    reached = sum(1 for n in counts if n > 0)
    return (100.0 * reached / len(counts) if counts else 100.0), reached, len(counts)


def ranges(numbers):
    """Returns line numbers as text: 3, 7-9."""
    out = []
    for n in sorted(numbers):
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("report")
    parser.add_argument("--lines", metavar="FOLDER", help="also name the lines not reached in this one")
    arguments = parser.parse_args()
    with open(arguments.report, encoding="utf-8") as file:
        groups = count(json.load(file))

    low = []
    print(f"{'':24}{'lines':>22}{'branches':>22}")
    for group in sorted(groups):
        files = groups[group].values()
        lines, reached, of = share(n for one, _ in files for n in one.values())
        branches, taken, arms = share(n for _, one in files for n in one)
        print(f"{group:24}{lines:8.1f} % of {of:6}   {branches:10.1f} % of {arms:6}")
        if group in REQUIRED and lines < LEAST:
            low.append(group)
    for group in sorted(groups):
        if arguments.lines and group.split()[0] == arguments.lines:
            for path, (lines, _) in sorted(groups[group].items()):
                if missing := [n for n, times in lines.items() if times == 0]:
                    print(f"include/holdfast/{path}: {ranges(missing)}")

    low += [group for group in REQUIRED if group not in groups]
    for group in low:
        print(f"{group}: less than {LEAST:.0f} % of its lines are reached")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
