# SPDX-License-Identifier: MIT
"""Draws how many sections a second a crowd does: plot_crowd.py benchmark.json crowd.svg

One panel for one Redis and one for five masters; a line for each lock, over the number of processes, on a log scale, on which a crowd
that did nothing in its time has no place.
"""

import json
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = {"holdfast": "#1a7f5a", "the same in turn": "#8a8f98", "a Lua queue": "#e09a1a", "the same protocol on bare hiredis": "#7a4fa3", "redis-py": "#c8442c", "node-redlock": "#4a5a70", "redis-plus-plus": "#2f6fb3"}
SHORT = {"the same protocol on bare hiredis": "bare hiredis"}
WHAT = re.compile(r"^(one Redis|five masters), (\d+) processes$")


def rate(text):
    return float(text.removesuffix("/s").replace(",", ""))


def lines(rows):
    """For each place: the name of each lock, and its rate at each number of processes."""
    found = {}
    for row in rows:
        what = WHAT.match(row["what"])
        if row["workload"] != "P7" or not what or row["unit"] != "×":
            continue
        place = found.setdefault(what[1], {})
        place.setdefault("holdfast", {})[int(what[2])] = rate(row["ours"])
        place.setdefault(row["rival"], {})[int(what[2])] = rate(row["theirs"])
    return found


def name_lines(axes, ends):
    """Writes each name beside the end of its line, and those of lines that end close together one above the other."""
    ordered = sorted(ends.items(), key=lambda end: end[1][1])
    heights = [axes.transData.transform(at)[1] * 72 / axes.figure.dpi for _, at in ordered]
    places = []
    for height in heights:
        places.append(max(height, places[-1] + 10) if places else height)
    up = sum(places) / len(places) - sum(heights) / len(heights)
    for (name, at), height, place in zip(ordered, heights, places):
        axes.annotate(SHORT.get(name, name), at, xytext=(6, place - height - up), textcoords="offset points", va="center", fontsize=8.5, color=COLOURS[name])


def main(source, destination):
    with open(source, encoding="utf-8") as file:
        results = json.load(file)
    places = lines(results["rows"])
    if not places:
        return
    figure, panels = plt.subplots(1, len(places), figsize=(10, 4.2), sharey=True, squeeze=False)
    ends = []
    for axes, (place, locks) in zip(panels[0], places.items()):
        axes.set_title(place, loc="left", fontsize=11, fontweight="bold")
        ends.append({})
        for name, rates in locks.items():
            numbers = sorted(n for n in rates if rates[n] > 0)
            axes.plot(numbers, [rates[n] for n in numbers], "o-", color=COLOURS[name], linewidth=2.4 if name == "holdfast" else 1.4, markersize=4)
            ends[-1][name] = (numbers[-1], rates[numbers[-1]])
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks([2, 8, 32, 64], ["2", "8", "32", "64"])
        axes.set_xlim(1.8, 260)
        axes.set_xlabel("processes that want the lock")
        axes.grid(color="#e4e6ea", linewidth=0.8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0][0].set_ylabel("sections a second")
    figure.tight_layout()
    for axes, of_lines in zip(panels[0], ends):
        name_lines(axes, of_lines)
    figure.savefig(destination, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
