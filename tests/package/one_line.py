#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles a program with the line that the README and another page give for those without CMake, in a folder beside
`holdfast`, and runs it. Ends with 1 if the two lines differ, or if one of the two steps fails.

    one_line.py README PAGE SOURCE_TREE PROGRAM FOLDER COMPILER
                    e.g. README.md docs/installing.md . tests/package/use_redis.cpp /tmp/one_line g++
"""

import pathlib
import re
import shlex
import shutil
import subprocess
import sys

IN_README = re.compile(r"`(g\+\+ [^`]*-I holdfast/include [^`]*)`")
IN_PAGE = re.compile(r"^    (g\+\+ .*-I holdfast/include .*)$", re.MULTILINE)


def the_line(pattern, page):
    """The only line of `page` that fits."""
    found = pattern.findall(pathlib.Path(page).read_text(encoding="utf-8"))
    if len(found) != 1:
        sys.exit(f"one_line.py: {page} has {len(found)} lines for g++, not one")
    return " ".join(found[0].split())


def main():
    readme, page, tree, source, folder, compiler = sys.argv[1:]
    line = the_line(IN_README, readme)
    if line != the_line(IN_PAGE, page):
        sys.exit(f"one_line.py: {page} gives another line than the README, `{line}`")
    made = pathlib.Path(folder)
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    (made / "holdfast").symlink_to(pathlib.Path(tree).resolve())
    shutil.copy(source, made / "service.cpp")
    _, *options = shlex.split(line)
    subprocess.run([compiler, *options], cwd=made, check=True)
    sys.exit(subprocess.run([made.resolve() / "a.out"], check=False, timeout=300).returncode != 0)


if __name__ == "__main__":
    main()
