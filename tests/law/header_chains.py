#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says which headers can be shown to stand alone in one file, without that one hides what another lacks.

    header_chains.py INCLUDE_FOLDER HEADER...        e.g. include holdfast/redis.hpp

Prints a line for each chain of headers, each of which includes all that those before it include. What one is compiled behind is then just
what it includes itself, as if it were alone; most of the time goes to the standard library's headers, which are read once for a chain. What is
included between the two has been shown to stand alone in its own chain, where it is among the headers that are named.
"""

import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"\s]+)[>\"]")
CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|endif)\b")
# Nothing that a header says of its own, nor is an include of what is no file's name.
SAYS_NOTHING = re.compile(r"#\s*(pragma|else|error|include)\b")


def includes_of(text):
    """What a header includes in any case before it says anything of its own, and all that it may include."""
    certain, possible, depth, begun = [], [], 0, False
    for line in filter(None, map(str.strip, COMMENT.sub("", text).replace("\\\n", "").splitlines())):
        condition, include = CONDITION.match(line), INCLUDE.match(line)
        if condition:
            depth += -1 if condition[1] == "endif" else 1
        elif include:
            possible.append(include[1])
            if depth == 0 and not begun:
                certain.append(include[1])
        elif not SAYS_NOTHING.match(line):
            begun = True
    return certain, possible


def closure(name, graph):
    """`name` and all that it brings with it."""
    found, open_ends = set(), [name]
    while open_ends:
        one = open_ends.pop()
        if one not in found:
            found.add(one)
            open_ends += graph.get(one, [])
    return found


def chains(root, headers):
    """The headers in as few chains as there can be, each in the order in which it is to be included."""
    certain, possible = {}, {}
    for path in pathlib.Path(root).rglob("*.hpp"):
        name = path.relative_to(root).as_posix()
        certain[name], possible[name] = includes_of(path.read_text(encoding="utf-8"))
    sure = {name: closure(name, certain) for name in headers}
    all_of = {name: closure(name, possible) for name in headers}
    # Nor is one of any use behind another that brings it: it would not be read again.
    may_follow = {a: [b for b in headers if all_of[a] <= sure[b] and b not in all_of[a]] for a in headers}

    before = {}  # whom a header follows: a matching that is made as large as it can be, one way through at a time

    def place(name, seen):
        for other in may_follow[name]:
            if other not in seen:
                seen.add(other)
                if other not in before or place(before[other], seen):
                    before[other] = name
                    return True
        return False

    for name in sorted(headers, key=lambda n: -len(all_of[n])):
        place(name, set())
    behind = {first: second for second, first in before.items()}
    found = []
    for first in (name for name in headers if name not in before):
        chain = [first]
        while chain[-1] in behind:
            chain.append(behind[chain[-1]])
        found.append(chain)
    return found


if __name__ == "__main__":
    for found in chains(sys.argv[1], sys.argv[2:]):
        print(" ".join(found))
