# SPDX-License-Identifier: MIT
"""Draws what a crowd does with the other primitives: plot_family.py benchmark.json family.svg

A row for each primitive and place: sections a second of 8 and of 64 processes, in relation to the same processes one after another, with
sections that do nothing and with those of 2 ms. Several at a time may have a permit, or read: so it can be more than 1.
"""

import json
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

EMPTY = "sections that do nothing"
WORKING = "sections of 2 ms"
COLOURS = {EMPTY: "#1a7f5a", WORKING: "#e09a1a"}
FEW, MANY = 8, 64
WHAT = re.compile(rf"^(.+) on (one Redis|five masters), ({FEW}|{MANY}) processes(, {WORKING})?$")


def ratios(rows):
    """For each primitive and place: the ratio for each kind of section and number of processes."""
    found = {}
    for row in rows:
        what = WHAT.match(row["what"])
        if row["workload"] != "P7" or not what or row["unit"] != "×":
            continue
        of = found.setdefault(f"{what[1]}\n{what[2]}", {})
        of.setdefault(WORKING if what[4] else EMPTY, {})[int(what[3])] = float(row["value"])
    return found


def main(source, destination):
    with open(source, encoding="utf-8") as file:
        found = ratios(json.load(file)["rows"])
    if not found:
        return
    figure, axes = plt.subplots(figsize=(8, 1.1 + 0.6 * len(found)))
    for place, (name, kinds) in enumerate(found.items()):
        for side, (kind, numbers) in zip((-0.14, 0.14), kinds.items()):
            ends = [numbers[n] for n in sorted(numbers)]
            axes.plot(ends, [place + side] * len(ends), "-", color=COLOURS[kind], linewidth=1.4)
            for number, ratio in numbers.items():
                axes.plot(ratio, place + side, "o", color=COLOURS[kind], markersize=4 if number == FEW else 8)
    for kind, colour in COLOURS.items():
        axes.plot([], [], "o-", color=colour, label=kind)
    axes.axvline(1, color="#8a8f98", linewidth=1, linestyle="--")
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
    axes.minorticks_off()
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.set_xlabel("times the sections a second of the same processes in turn (small: 8 of them, large: 64)")
    axes.grid(axis="x", color="#e4e6ea", linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncol=2, fontsize=9)
    figure.tight_layout()
    figure.savefig(destination, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
