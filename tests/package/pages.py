#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the C++ that pages show, each piece as the body of a function, behind what a reader has to think of, and
looks for what their links name. Ends with 1 where the compiler refuses a piece, a link leads nowhere, or a line of prose
is longer than 120 characters; a row of a table may be.

    pages.py INCLUDE_FOLDER COMPILER [OPTION...] -- PAGE...        e.g. include g++ -- README.md

A piece that has a `main` of its own, or is a coroutine, stands alone.
"""

import pathlib
import re
import subprocess
import sys

CODE = re.compile(r"^```cpp\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
LONGEST = 120

# What the words of the page stand for.
AROUND = """
#include <holdfast/memory.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>
#include <iostream>

void ship();
void halt();
void rollback();
void log(char const* words);
template <class Token>
long total(Token token);
struct database {
    void write(int row, std::optional<std::uint64_t> token);
};
extern database db;
extern int row;
extern std::stop_token stop;
extern holdfast::redlock::masters masters;
"""


def program(pages):
    """All pieces of `pages` in one file; those of a page in a namespace of its own."""
    includes, bodies = [], []
    for at, page in enumerate(pages):
        bodies.append(f"namespace page_{at} {{")
        for number, piece in enumerate(CODE.findall(page)):
            lines = piece.splitlines()
            includes += [line for line in lines if line.startswith("#include")]
            body = "\n".join(line for line in lines if not line.startswith("#include"))
            renamed = body.replace("int main()", f"void piece_{number}()")
            if renamed == body and "co_await" not in body:
                renamed = f"void piece_{number}()\n{{\nusing namespace std::chrono_literals;\n{body}\n}}"
            bodies.append(renamed)
        bodies.append("}")
    if not includes:
        sys.exit("there is no C++ in the pages")
    return "\n".join(includes) + AROUND + "\n".join(bodies) + "\n"


def anchors(text):
    """What a link can name in a page: its headings, as GitHub writes them."""
    found = HEADING.findall(re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def dead_links(path):
    """The links of the page `path` that lead nowhere in this project."""
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = path.parent / file if file else path
        if not there.exists():
            yield f"{path}: there is no {target}"
        elif anchor and anchor not in anchors(there.read_text(encoding="utf-8")):
            yield f"{path}: there is no heading {target}"


def long_lines(path):
    """The lines of the page `path` that are too long to be read beside another file: no code, no rows of tables."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and len(line) > LONGEST and not line.startswith("    ") and not line.lstrip().startswith("|"):
            yield f"{path}:{number}: {len(line)} characters; a line of prose has at most {LONGEST}"


if __name__ == "__main__":
    split = sys.argv.index("--")
    include, compiler, *options = sys.argv[1:split]
    paths = [pathlib.Path(one) for one in sys.argv[split + 1 :]]
    wrong = [one for path in paths for look in (dead_links, long_lines) for one in look(path)]
    print("\n".join(wrong), end="\n" if wrong else "")
    text = program([path.read_text(encoding="utf-8") for path in paths])
    command = [compiler, *options, "-std=c++20", "-fsyntax-only", "-I", include, "-x", "c++", "-"]
    refused = subprocess.run(command, input=text, text=True, check=False).returncode != 0
    sys.exit(1 if wrong or refused else 0)
