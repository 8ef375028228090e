#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the C++ that a page shows, each piece as the body of a function, behind what a reader has to think of.

    readme.py PAGE INCLUDE_FOLDER COMPILER [OPTION...]        e.g. README.md include g++

A piece that has a `main` of its own, or is a coroutine, stands alone. Ends with 1 where the compiler refuses one.
"""

import pathlib
import re
import subprocess
import sys

CODE = re.compile(r"^```cpp\n(.*?)^```", re.DOTALL | re.MULTILINE)

# What the words of the page stand for.
AROUND = """
#include <asio/awaitable.hpp>
#include <asio/use_awaitable.hpp>
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
asio::awaitable<void> write(int row, std::uint64_t token);
extern int row;
extern std::stop_token stop;
extern holdfast::redlock::masters masters;
"""


def program(page):
    """All pieces of `page` in one file."""
    pieces = CODE.findall(page)
    if not pieces:
        sys.exit("there is no C++ in the page")
    includes, bodies = [], []
    for number, piece in enumerate(pieces):
        lines = piece.splitlines()
        includes += [line for line in lines if line.startswith("#include")]
        body = "\n".join(line for line in lines if not line.startswith("#include"))
        renamed = body.replace("int main()", f"void piece_{number}()")
        if renamed == body and "co_await" not in body:
            renamed = f"void piece_{number}()\n{{\nusing namespace std::chrono_literals;\n{body}\n}}"
        bodies.append(renamed)
    return "\n".join(includes) + AROUND + "\n".join(bodies) + "\n"


if __name__ == "__main__":
    page, include, compiler, *options = sys.argv[1:]
    text = program(pathlib.Path(page).read_text(encoding="utf-8"))
    command = [compiler, *options, "-std=c++20", "-fsyntax-only", "-I", include, "-x", "c++", "-"]
    sys.exit(1 if subprocess.run(command, input=text, text=True, check=False).returncode else 0)
