#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says what shows the lessons of lessons.md, and whether something shows each.

    lessons.py TESTS_FOLDER [NUMBER]        the folder of lessons.md, e.g. tests; a lesson, or all

Tests have the lessons that they show as tags, and rows of live faults and mutants as labels: lesson-7. Exit status 1: a
lesson that nothing shows, or a number that is no lesson's.
"""

import pathlib
import re
import sys

LESSON = re.compile(r"^\| (\d+) \|", re.MULTILINE)
SHOWN = re.compile(r"\blesson-(\d+)\b")


def shown_by(tests):
    """Lesson by lesson, the lines that say that they show it: (path, number of the line, line)."""
    found = {}
    for path in sorted(tests.rglob("*")):
        name = path.relative_to(tests)
        if name.parts[0] == "law" or not (path.suffix in (".cpp", ".py") or path.name == "CMakeLists.txt"):
            continue
        for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for number in SHOWN.findall(line):
                found.setdefault(int(number), []).append((name, at, line.strip()))
    return found


def breaches(tests):
    lessons = [int(number) for number in LESSON.findall((tests / "lessons.md").read_text(encoding="utf-8"))]
    shown = shown_by(tests)
    wrong = [f"lesson {number}: nothing shows it" for number in lessons if number not in shown]
    for number, places in shown.items():
        if number not in lessons:
            wrong += [f"{name}:{at}: there is no lesson {number}" for name, at, _ in places]
    if not lessons or lessons != list(range(1, len(lessons) + 1)):
        wrong.append("lessons.md: the lessons are not numbered from 1 on")
    return wrong


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    tests = pathlib.Path(sys.argv[1])
    for number, places in sorted(shown_by(tests).items()):
        if len(sys.argv) == 2 or number == int(sys.argv[2]):
            for name, at, line in places:
                print(f"lesson {number}: {name}:{at}: {line}")
    wrong = breaches(tests)
    print(*wrong, f"{len(wrong)} breaches", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
