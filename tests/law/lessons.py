#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that what the table of lessons names exists: tests, rows of live faults, mutants.

    lessons.py TESTS_FOLDER        the folder of lessons.md, e.g. tests

A test that is renamed or taken away would leave a lesson that nothing shows, and nobody would see it. So each name is a link
to the file that has it, and is looked for there. Prints whatever is not there and exits with 1 if something is not.
test_lessons.py shows that it can.
"""

import ast
import pathlib
import re
import sys

LESSON = re.compile(r"^\| (\d+) \|(.*)\|([^|]*)\|([^|]*)\|$", re.MULTILINE)
LINK = re.compile(r"(?:(row|mutant) )?\[`([^`]+)`\]\(([^)\s]+)\)")
NOT_YET = re.compile(r"not yet: [^<]+")
# The name of a test may be divided into literals that follow each other, on one line or several.
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
TEST = re.compile(r"^[ \t]*(?:TEMPLATE_)?TEST_CASE\(\s*(" + LITERAL + r"(?:\s*" + LITERAL + r")*)", re.MULTILINE)
ROWS = re.compile(r"(?:set\(rows|list\(APPEND rows)\s+([^)]*)\)")


def tests_in(text):
    """The names of the test cases in a file."""
    return {"".join(ast.literal_eval(part) for part in re.findall(LITERAL, literals)) for literals in TEST.findall(text)}


def rows_in(text):
    """The rows that a CMakeLists.txt of live faults makes tests of."""
    return {row for listed in ROWS.findall(text) for row in listed.split()}


def mutants_in(text):
    """The keys of MUTANTS."""
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign) and [target.id for target in statement.targets] == ["MUTANTS"]:
            return {key.value for key in statement.value.keys}
    return set()


def missing(tests, kind, name, target):
    """What is wrong with a link of the table to `target`, below the folder `tests`; None where nothing is."""
    path = tests / target
    if not path.is_file():
        return f"the file {target} does not exist"
    text = path.read_text(encoding="utf-8")
    if kind == "mutant":
        there = mutants_in(text)
    elif kind == "row":
        there = rows_in((tests / "faults/CMakeLists.txt").read_text(encoding="utf-8"))
        # A row by its own name, or what its file is named after.
        alone = re.search(rf"^namespace holdfast::faults::{re.escape(name)} \{{$", text, re.MULTILINE)
        if not re.search(rf"^void {'go' if alone else re.escape(name)}\(", text, re.MULTILINE):
            return f"{target} has no row {name}"
    else:
        there = tests_in(text)
    return None if name in there else f"{target} has no {kind or 'test'} “{name}”"


def breaches(folder):
    """Everything that is wrong with the table, as (lesson, sentence)."""
    tests = pathlib.Path(folder)
    text = (tests / "lessons.md").read_text(encoding="utf-8")
    lessons = LESSON.findall(text)
    found = []
    if not lessons:
        found.append(("the table", "has no lessons"))
    if len(lessons) != len(re.findall(r"^\| *\d", text, re.MULTILINE)):
        found.append(("the table", "has lines that are not understood"))
    if [int(number) for number, *_ in lessons] != list(range(1, len(lessons) + 1)):
        found.append(("the table", "is not numbered from 1 on"))
    for number, _, _, shown_by in lessons:
        parts = [part.strip() for part in shown_by.split("<br>")]
        for part in parts:
            link = LINK.fullmatch(part)
            if link:
                wrong = missing(tests, *link.groups())
            else:
                wrong = None if NOT_YET.fullmatch(part) else f"neither a link nor “not yet: …”: {part}"
            if wrong:
                found.append((f"lesson {number}", wrong))
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = breaches(sys.argv[1])
    for lesson, sentence in found:
        print(f"{lesson}: {sentence}")
    print(f"{len(found)} breaches in lessons.md")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
