#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies the library with every mutant in it. HOLDFAST_MUTANT names the one that a program built with the copy is; without, it is none.

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
            text = text.replace(old, new.replace("MUTANT", f"::holdfast::is_mutant({number})"))
        texts[header] = text
    texts["mutant.hpp"] = CHOICE % ", ".join(f'"{name}"' for name in MUTANTS)
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
