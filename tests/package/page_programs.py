#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles and runs the whole programs of the pages, and the first lock of the README, which is given more time, with
functions that only note that they are called as the user's own code, and real servers in place of those that they name:
a redis-server for each URL. Ends with 1 if one fails, if a program that prints a fencing token prints none, or if the
README's does not do its work.

    page_programs.py FOLDER INCLUDE_FOLDER COMPILER OPTIONS README PAGE...
                        e.g. /tmp/run include g++ '-pthread -lhiredis' README.md docs/redlock.md
"""

import contextlib
import pathlib
import re
import shlex
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from redis_server import running_redis  # noqa: E402

PIECE = re.compile(r"^```cpp\n(.*?)^```", re.DOTALL | re.MULTILINE)
SERVER = re.compile(r"redis://[\d.]+(?::\d+)?(?=\")")
TOKEN = re.compile(r"fencing token [1-9]\d*$", re.MULTILINE)
# A server that was started less than a minute ago has no vote in a Redlock, and a hundredth of that longer.
GUARD = 62

OWN_CODE = """
#include <cstdint>
#include <iostream>
#include <mutex>
struct {
    void write(int, std::uint64_t token) { written = token != 0; }
    bool written = false;
} db;
int row = 0;
bool shipped = false;
void log(char const* what) { std::cerr << what << '\\n'; }
void ship() { shipped = true; }
void halt() { std::abort(); }
"""


def first_lock(piece):
    """The README's piece as a program."""
    lines = piece.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    rest = [line for line in lines if not line.startswith("#include")]
    rest = [line.replace("500ms", "1min") for line in rest]
    return "\n".join([*includes, OWN_CODE, "int main()", "{", *rest, "return db.written && shipped ? 0 : 1;", "}", ""])


def programs(readme, pages):
    """Each with its name."""
    section = readme.read_text(encoding="utf-8").split("\n## A first lock\n", 1)[1]
    yield readme.stem, first_lock(PIECE.search(section)[1])
    for page in pages:
        for number, piece in enumerate(PIECE.findall(page.read_text(encoding="utf-8"))):
            if "int main()" in piece:
                yield f"{page.stem}_{number}", "#include <mutex>\ninline void ship() {}\n" + piece


def main():
    folder, include, compiler, options, readme, *pages = sys.argv[1:]
    made = pathlib.Path(folder)
    made.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as servers:
        all_programs = []
        for name, source in programs(pathlib.Path(readme), [pathlib.Path(page) for page in pages]):
            for url in dict.fromkeys(SERVER.findall(source)):
                port = servers.enter_context(running_redis())
                begun = time.monotonic()
                source = source.replace(f'"{url}"', f'"redis://127.0.0.1:{port}"')
            file = made / f"{name}.cpp"
            file.write_text(source, encoding="utf-8")
            words = [compiler, "-std=c++20", "-O0", "-I", include, file, *shlex.split(options), "-o", made / name]
            subprocess.run(words, check=True)
            all_programs.append((name, source))
        time.sleep(max(0, GUARD - (time.monotonic() - begun)))
        for name, source in all_programs:
            said = subprocess.run([made / name], check=True, timeout=300, text=True, stdout=subprocess.PIPE).stdout
            if "fencing token " in source and not TOKEN.search(said) and name != pathlib.Path(readme).stem:
                sys.exit(f"page_programs.py: {name} printed no fencing token: {said}")
            print(f"{name}: {said.strip() or 'done'}")
    if len(all_programs) < 4:
        sys.exit("page_programs.py: the pages have no programs")


if __name__ == "__main__":
    main()
