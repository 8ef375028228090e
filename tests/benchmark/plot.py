# SPDX-License-Identifier: MIT
"""Draws the results of a benchmark run: plot.py benchmark.json benchmark.svg

A panel for each kind of figure, for less is better in one and more in another; a dot is the median over the repetitions, its
whiskers reach to the least and the greatest, and a bar across marks the target. Crowds are drawn by plot_crowd.py.
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.fonttype"] = "none"
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

MET, MISSED, FREE, TARGET, GREY = "#1a7f5a", "#c8442c", "#4a5a70", "#e09a1a", "#8a8f98"
TICKS = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20]


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


def panels(rows):
    """Times, rates, and figures that are no ratio, each with its title and how far a row is: a ratio, or the share of its target."""
    ratios = [row for row in rows if row["unit"] == "×"]
    # None, as of lost leases, has no place on a log scale: it is in the table.
    absolute = [row for row in rows if row["unit"] != "×" and "target" in row and min(row["target"]["value"], *row["values"]) > 0]
    times = [row for row in ratios if not row["ours"].endswith("/s")]
    rates = [row for row in ratios if row["ours"].endswith("/s")]
    found = [
        ("Time, as a multiple of the rival's: left is better", times, lambda row: 1.0),
        ("Throughput, as a multiple of the rival's: right is better", rates, lambda row: 1.0),
        ("Absolute figures, as a multiple of their target", absolute, lambda row: row["target"]["value"]),
    ]
    return [panel for panel in found if panel[1]]


def draw(axes, title, rows, scale):
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=8)
    extremes = [1.0]
    for place, row in enumerate(rows):
        unit = scale(row)
        value, low, high = row["value"] / unit, min(row["values"]) / unit, max(row["values"]) / unit
        extremes += [low, high]
        colour = FREE if "target" not in row else MET if row["met"] else MISSED
        axes.plot([low, high], [place, place], color=colour, linewidth=2, alpha=0.45, solid_capstyle="round")
        axes.plot(value, place, "o", color=colour, markersize=7, zorder=4)
        if "target" in row:
            goal = row["target"]["value"] / unit
            extremes.append(goal)
            axes.plot([goal, goal], [place - 0.32, place + 0.32], color=TARGET, linewidth=3, zorder=3)
        what = row["what"] + ("\n" + "vs. " + row["rival"] if row["rival"] else "")
        axes.text(-0.02, place, what, transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=8.5, linespacing=1.3)
        axes.text(-1.14, place, row["workload"], transform=axes.get_yaxis_transform(), ha="left", va="center", fontsize=9, fontweight="bold")
        figure = number(row["value"]) + ("×" if row["unit"] == "×" else row["unit"] if row["unit"] == "/s" else " " + row["unit"])
        if "target" in row:
            figure += f"  ({'≤' if row['target']['at_most'] else '≥'} {row['target']['value']:,g})"
        axes.text(1.015, place, figure, transform=axes.get_yaxis_transform(), va="center", fontsize=9, color=colour, fontweight="bold")
    axes.set_xscale("log")
    axes.set_xlim(min(extremes) / 1.15, max(extremes) * 1.15)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.axvline(1, color=GREY, linewidth=1, zorder=1)
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))
    axes.yaxis.set_major_locator(NullLocator())
    axes.tick_params(axis="x", labelsize=8.5, length=0)
    axes.grid(axis="x", color="#e4e6ea", linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#c5c9d0")


def main(source, destination):
    with open(source, encoding="utf-8") as file:
        results = json.load(file)
    shown = panels([row for row in results["rows"] if row["workload"] != "P7"])  # which has a picture of its own
    if not shown:
        return

    heights = [len(rows) for _, rows, _ in shown]
    row_height, gap, head, foot = 0.46, 0.95, 1.15, 0.75
    height = head + foot + row_height * sum(heights) + gap * (len(shown) - 1)
    figure = plt.figure(figsize=(15, height))
    top = height - head
    for (title, rows, scale), count in zip(shown, heights):
        axes = figure.add_axes((0.47, (top - row_height * count) / height, 0.4, row_height * count / height))
        draw(axes, title, rows, scale)
        top -= row_height * count + gap

    figure.text(0.02, 1 - 0.3 / height, "holdfast against what limits it", fontsize=15, fontweight="bold", va="center")
    if results["quick"]:
        figure.text(0.33, 1 - 0.3 / height, "a quick run: these are no figures", fontsize=11, color=MISSED, va="center")
    machine = results["machine"]
    figure.text(
        0.02,
        0.2 / height,
        f"{machine['processors']} × {machine['processor']} · {machine['kernel']} · Redis {machine['redis']} · "
        f"hiredis {machine['hiredis']} · {machine['compiler']} · "
        f"holdfast {machine['holdfast']}, commit {machine['commit']}",
        fontsize=8.5,
        color="#5a5f68",
        va="center",
    )
    figure.legend(
        handles=[
            Line2D([], [], color=MET, marker="o", linewidth=2, label="target met"),
            Line2D([], [], color=MISSED, marker="o", linewidth=2, label="target missed"),
            Line2D([], [], color=FREE, marker="o", linewidth=2, label="no target"),
            Line2D([], [], color=TARGET, marker="|", markersize=12, markeredgewidth=3, linestyle="none", label="target"),
        ],
        loc="upper right",
        bbox_to_anchor=(0.985, 1 - 0.1 / height),
        ncol=4,
        frameon=False,
        fontsize=9,
    )
    figure.savefig(destination, metadata={"Date": None})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
