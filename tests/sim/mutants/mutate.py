#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies the library with every mutant in it. HOLDFAST_MUTANT names the one that a program built with the copy is;
without, it is none.

    mutate.py INCLUDE TO

Exit status 2: a marker without a mutant, a mutant without its markers, or one that does not fit the line marked.
"""

import argparse
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from mutants import MUTANTS  # noqa: E402

CHOICE = """// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <type_traits>

namespace holdfast {

/// Returns: the number of the mutant that this program is; 0: none.
inline int asked_for_mutant()
{
    constexpr std::string_view names[] = {%s};
    auto const* const asked = std::getenv("HOLDFAST_MUTANT");
    if (asked == nullptr) return 0;
    int number = 0;
    for (auto const name : names) {
        ++number;
        if (name == asked) return number;
    }
    std::fprintf(stderr, "there is no mutant %%s\\n", asked);
    std::_Exit(2);
}

inline int const mutant = asked_for_mutant();

constexpr bool is_mutant(int number) noexcept { return !std::is_constant_evaluated() && mutant == number; }

}  // namespace holdfast
"""


MARKER = re.compile(r"// mutant: +(.*\S)")


class Wrong(Exception):
    """What is wrong with a marker or a mutant, named."""


def put_in(name, number, change, code):
    """A line's code with a mutant in it."""
    old, new = ("LINE", change.replace("LINE", code)) if isinstance(change, str) else change
    new = new.replace("MUTANT", f"::holdfast::is_mutant({number})")
    if old == "LINE":
        return new
    if code.count(old) != 1:
        raise Wrong(f"{name}: the marked line has this text {code.count(old)} times, not once: {old}\n    {code}")
    return code.replace(old, new)


def mutated(headers, mutants=MUTANTS):
    """Header by header, the text with every mutant in it."""
    numbers = {name: number for number, name in enumerate(mutants, 1)}
    used = dict.fromkeys(mutants, 0)
    for name, mutant in mutants.items():
        if "MUTANT" not in repr(mutant.changes):
            raise Wrong(f"{name}: it is the same whether it is asked for or not")
    texts = {}
    for header, shipped in sorted(headers.items()):
        lines = shipped.split("\n")
        for at, line in enumerate(lines):
            marker = MARKER.search(line)
            if not marker:
                continue
            before = line[: marker.start()].rstrip()
            lines[at] = before
            marked = at if before else at + 1
            code = lines[marked].strip() if marked < len(lines) else ""
            if not code or code.startswith("//"):
                raise Wrong(f"{header}:{at + 1}: there is no code on the line after: {marker[1]}")
            indentation = lines[marked][: len(lines[marked]) - len(lines[marked].lstrip())]
            for name in re.split(", *", marker[1]):
                if name not in mutants:
                    raise Wrong(f"{header}:{at + 1}: there is no mutant {name}")
                changes = mutants[name].changes
                if used[name] == len(changes):
                    raise Wrong(f"{header}:{at + 1}: more lines are marked than the mutant changes: {name}")
                code = put_in(name, numbers[name], changes[used[name]], code)
                used[name] += 1
            lines[marked] = indentation + code
        texts[header] = "\n".join(lines)
        if texts[header] != shipped:
            once = "#pragma once\n"
            texts[header] = texts[header].replace(once, once + "\n#include <holdfast/mutant.hpp>\n", 1)
    for name, count in used.items():
        if count != len(mutants[name].changes):
            raise Wrong(f"{name}: {count} lines are marked, not {len(mutants[name].changes)}")
    return {**texts, "mutant.hpp": CHOICE % ", ".join(f'"{name}"' for name in mutants)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("include", type=pathlib.Path, help="the folder of the shipped headers")
    parser.add_argument("to", type=pathlib.Path, help="the folder of the copy")
    given = parser.parse_args()
    folder = given.include / "holdfast"
    headers = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.hpp")}
    try:
        texts = mutated(headers)
    except Wrong as why:
        print(why)
        return 2
    for name, text in texts.items():
        copy = given.to / "holdfast" / name
        # What is as it was is not compiled again.
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")
    for copy in (given.to / "holdfast").rglob("*.hpp"):
        if str(copy.relative_to(given.to / "holdfast")) not in texts:
            copy.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
