#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the C++ of a section of a page, each piece as the body of a function. Ends with 1 if one throws, or if a result
is not what a comment beside it says: `bool const got = …;  // false` or `…(ec);  // outcome_unknown`.

    run_page.py PAGE SECTION FOLDER INCLUDE_FOLDER COMPILER [OPTION...]
                        e.g. docs/testing.md 'Without servers' /tmp/run include g++ -pthread
"""

import pathlib
import re
import subprocess
import sys

PIECE = re.compile(r"^```cpp\n(.*?)^```", re.DOTALL | re.MULTILINE)
SAID = [
    (re.compile(r"^(.*\bbool const (\w+) = .*;) +// (true|false)\b.*$"), r"\1 check(\2 == \3, __LINE__);"),
    (re.compile(r"^(.*\(ec\);) +// (\w+)\b.*$"), r"\1 check(ec == holdfast::errc::\2, __LINE__);"),
]
BEFORE = """
#include <chrono>
#include <iostream>
#include <thread>
using namespace std::chrono_literals;
bool good = true;
void check(bool is, int line)
{
    if (!is) std::cerr << "line " << line << ": it is not as the page says\\n";
    good = good && is;
}
"""


def program(section):
    """The pieces in one file, and how many results are looked at."""
    includes, bodies, looks = [], [], 0
    for number, piece in enumerate(PIECE.findall(section)):
        bodies.append(f"void piece_{number}()\n{{")
        for line in piece.splitlines():
            for pattern, code in SAID:
                line, found = pattern.subn(code, line)
                looks += found
            (includes if line.startswith("#include") else bodies).append(line)
        bodies.append("}")
    calls = " ".join(f"piece_{number}();" for number in range(len(PIECE.findall(section))))
    return "\n".join([*includes, BEFORE, *bodies, f"int main() {{ {calls} return good ? 0 : 1; }}", ""]), looks


def main():
    page, heading, folder, include, compiler, *options = sys.argv[1:]
    text = pathlib.Path(page).read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    source, looks = program(section[1] if section else "")
    if not looks:
        sys.exit(f"run_page.py: {page} says of no result under '{heading}' what it is")
    made = pathlib.Path(folder)
    made.mkdir(parents=True, exist_ok=True)
    (made / "pieces.cpp").write_text(source, encoding="utf-8")
    subprocess.run([compiler, "-std=c++20", "-O0", "-I", include, made / "pieces.cpp", *options, "-o", made / "pieces"],
                   check=True)
    sys.exit(subprocess.run([made / "pieces"], check=False, timeout=300).returncode != 0)


if __name__ == "__main__":
    main()
