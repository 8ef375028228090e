#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies the library with every mutant in it. HOLDFAST_MUTANT tells a program built with the copy which of them it is; without, it is none.

    mutate.py INCLUDE TO

Exit status 2: a text that a mutant replaces is not where the table says, or not once.
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
from mutants import MUTANTS  # noqa: E402

CHOICE = """// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>

namespace holdfast {

/// The mutant that this program is; 0: none.
inline int const mutant = std::getenv("HOLDFAST_MUTANT") == nullptr ? 0 : std::atoi(std::getenv("HOLDFAST_MUTANT"));

}  // namespace holdfast
"""


def die(why):
    print(why)
    sys.exit(2)


def mutated(include):
    """Header by header, the text with every mutant in it."""
    texts = {}
    for number, (name, (header, replacements, *_)) in enumerate(MUTANTS.items(), start=1):
        shipped = (include / "holdfast" / header).read_text(encoding="utf-8")
        if not any("MUTANT" in new for _, new in replacements):
            die(f"{name}: it is the same whether it is asked for or not")
        text = texts.get(header, shipped.replace("#pragma once\n", "#pragma once\n\n#include <holdfast/mutant.hpp>\n", 1))
        for old, new in replacements:
            if shipped.count(old) != 1 or text.count(old) != 1:
                die(f"{name}: {header} has this text {shipped.count(old)} times, and {text.count(old)} times with the mutants before, not once: {old}")
            text = text.replace(old, new.replace("MUTANT", f"(::holdfast::mutant == {number})"))
        texts[header] = text
    texts["mutant.hpp"] = CHOICE
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("include", type=pathlib.Path, help="the folder of the shipped headers")
    parser.add_argument("to", type=pathlib.Path, help="the folder of the copy")
    given = parser.parse_args()
    texts = mutated(given.include)
    for path in (given.include / "holdfast").rglob("*.hpp"):
        name = str(path.relative_to(given.include / "holdfast"))
        texts.setdefault(name, path.read_text(encoding="utf-8"))
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
