#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that lessons.py refuses what it should: each test feeds it a table, or a tree, with one thing in it that is not there."""

import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

import lessons

TEST = "[`what came late`](redis/late_test.cpp)"
ROW = "row [`late`](faults/rows/late.cpp)"
MUTANT = "mutant [`no compare`](sim/mutants/mutants.py)"

# A tree in which everything is there that the table names; the tests below change a file of it.
TREE = {
    "redis/late_test.cpp": '// A test.\nTEST_CASE("what came late")\n{\n}\nTEMPLATE_TEST_CASE("of every store",\n    "", HOLDFAST_STORES)\n{\n}\n'
                           'TEST_CASE("a name that is so long, "\n          "it is in two parts", "[slow]")\n{\n    CHECK("of every store" == 1);\n}\n'
                           '// TEST_CASE("switched off")\n',
    "faults/CMakeLists.txt": 'set(rows soak\n  late)\nif(ON)\n  list(APPEND rows cut_off)\nendif()\nset(others early)\n',
    "faults/rows/late.cpp": "void late(run_options const& run, findings& to)\n{\n}\nvoid early(run_options const& run, findings& to)\n{\n}\n",
    "sim/mutants/mutants.py": 'OTHER = {"other": ()}\nMUTANTS = {\n    # "gone": (),\n    "no compare": ("a.hpp", [("no validity", "")]),\n}\n',
}


def table(*shown_by):
    return "# Lessons\n\n| # | seen in | required | shown by |\n|---|---|---|---|\n" + "".join(
        f"| {number} | there | this | {by} |\n" for number, by in enumerate(shown_by, 1)
    )


def put(folder, text, changes=None):
    for name, content in {**TREE, "lessons.md": text, **(changes or {})}.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def judge(text, changes=None):
    with tempfile.TemporaryDirectory() as folder:
        put(folder, text, changes)
        return lessons.breaches(folder)


class Lessons(unittest.TestCase):
    def refused(self, text, words, changes=None):
        found = judge(text, changes)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0][1])

    def test_a_table_of_what_is_there(self):
        self.assertEqual(judge(table(f"{TEST}<br>{ROW}<br>{MUTANT}", f"not yet: there is no such lock. But:<br>{TEST}", "not yet: nothing")), [])
        for name in ("of every store", "a name that is so long, it is in two parts"):
            self.assertEqual(judge(table(f"[`{name}`](redis/late_test.cpp)")), [])

    def test_a_test_that_is_not_there(self):
        for name in ("what came later", "what came", "switched off", "a name that is so long, ", "slow", "late"):
            self.refused(table(f"[`{name}`](redis/late_test.cpp)"), "has no test")

    def test_a_test_that_is_renamed(self):
        self.refused(table(TEST), "has no test", {"redis/late_test.cpp": 'TEST_CASE("what came too late")\n'})

    def test_a_test_in_another_file(self):
        self.refused(table("[`what came late`](redis/early_test.cpp)"), "does not exist")
        self.refused(table("[`what came late`](redis/early_test.cpp)"), "has no test", {"redis/early_test.cpp": "\n"})

    def test_a_row_that_is_not_there(self):
        self.refused(table("row [`latest`](faults/rows/late.cpp)"), "has no row")
        self.refused(table("row [`cut_off`](faults/rows/late.cpp)"), "has no row")

    def test_a_row_that_is_named_as_its_file(self):
        opened = "namespace holdfast::faults::%s {\nvoid %s(run_options const& run, findings& to);\n"
        self.assertEqual(judge(table(ROW), {"faults/rows/late.cpp": opened % ("late", "go")}), [])
        for name, function in (("early", "go"), ("late", "late"), ("late_too", "go")):
            self.refused(table(ROW), "has no row", {"faults/rows/late.cpp": opened % (name, function)})

    def test_a_row_that_is_no_test(self):
        self.refused(table("row [`early`](faults/rows/late.cpp)"), "has no row")

    def test_a_mutant_that_is_not_there(self):
        for name in ("no validity", "gone", "other", "compare"):
            self.refused(table(f"mutant [`{name}`](sim/mutants/mutants.py)"), "has no mutant")

    def test_a_kind_that_it_is_not(self):
        self.refused(table("mutant [`what came late`](redis/late_test.cpp)"), "has no mutant", {"redis/late_test.cpp": "MUTANTS = {}\n"})
        self.refused(table("[`late`](faults/rows/late.cpp)"), "has no test")

    def test_what_is_no_link(self):
        for part in ("what came late", "`what came late`", "", "not yet", f"{TEST} and more", f"{TEST}, {ROW}"):
            self.refused(table(part), "neither a link")

    def test_each_lesson_is_looked_at(self):
        wrong = "[`gone`](redis/late_test.cpp)"
        self.assertEqual([lesson for lesson, _ in judge(table(TEST, f"{TEST}<br>{wrong}", ROW, wrong))], ["lesson 2", "lesson 4"])

    def test_the_numbers(self):
        self.refused(table(TEST, TEST).replace("| 2 |", "| 3 |"), "not numbered")
        self.refused(table(), "no lessons")

    def test_a_line_that_is_not_understood(self):
        self.refused(table(TEST) + f"| 2 | there | {TEST} |\n", "not understood")

    def test_the_exit_status_tells(self):
        for text, status in ((table(TEST), 0), (table("gone"), 1)):
            with self.subTest(status=status), tempfile.TemporaryDirectory() as folder:
                put(folder, text)
                with mock.patch("sys.argv", ["lessons.py", folder]), contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(lessons.main(), status)


if __name__ == "__main__":
    unittest.main()
