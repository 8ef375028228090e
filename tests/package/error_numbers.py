#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the numbers on the page of errors with those of the codes: error_numbers.py PAGE HEADER..."""
import pathlib
import re
import sys


def numbers(header):
    """Returns: the number of each code."""
    body = re.search(r"enum class errc\s*\{(.*?)\};", header, re.S)[1]
    names = re.findall(r"^\s*(\w+)(?: = 1)?,", re.sub(r"//.*", "", body), re.M)
    return {name: number for number, name in enumerate(names, 1)}


def section(page, title):
    """Returns: the part of the page below the first heading that has `title`."""
    return re.search(rf"^#+ {title}\n(.*?)(?=^# |^## |\Z)", page, re.S | re.M)[1]


def main(page, *headers):
    page = pathlib.Path(page).read_text()
    titles = ("Errors and messages", "Codes of Redis", "Codes of ZooKeeper", "Codes of TLS")
    wrong = []
    for path, title in zip(headers, titles, strict=True):
        said = {name: int(number) for name, number in re.findall(r"`(\w+)` \((\d+)\)", section(page, title))}
        right = numbers(pathlib.Path(path).read_text())
        wrong += [f"{title}: {name} is {right.get(name)}, and the page says {said.get(name)}"
                  for name in sorted(said.keys() | right.keys()) if said.get(name) != right.get(name)]
    print("\n".join(wrong) or "each number is right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
