#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that lessons.py refuses what it should."""

import pathlib
import tempfile
import unittest

from lessons import breaches

# A tree in which every lesson is shown; the tests below change a file of it.
TREE = {
    "lessons.md": "| # | seen in | required |\n|---|---|---|\n" + "".join(f"| {n} | there | this |\n" for n in (1, 2, 3)),
    "redis/late_test.cpp": 'TEST_CASE("what came late", "[slow][lesson-1]")\n',
    "faults/CMakeLists.txt": "set(labels_late lesson-2)\n",
    "sim/mutants/mutants.py": 'MUTANTS = {"late": mutant((), labels="lesson-1 lesson-3")}\n',
    "law/test_lessons.py": '"lesson-4"',
}


def found(changes={}):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**TREE, **changes}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return breaches(pathlib.Path(folder))


class EveryLessonIsShown(unittest.TestCase):
    def test_by_tags_and_labels(self):
        self.assertEqual(found(), [])

    def test_a_lesson_that_nothing_shows_is_named(self):
        self.assertEqual(found({"faults/CMakeLists.txt": ""}), ["lesson 2: nothing shows it"])
        # Another number that begins alike does not show it.
        self.assertIn("lesson 2: nothing shows it", found({"faults/CMakeLists.txt": "lesson-21"}))

    def test_a_number_that_is_no_lesson_is_named(self):
        tagged = {"redis/late_test.cpp": '\nTEST_CASE("what came late", "[lesson-1][lesson-9]")\n'}
        self.assertEqual(found(tagged), ["redis/late_test.cpp:2: there is no lesson 9"])

    def test_a_table_that_is_not_understood_is_refused(self):
        self.assertIn("lessons.md: the lessons are not numbered from 1 on", found({"lessons.md": "# Lessons\n"}))
        gap = TREE["lessons.md"].replace("| 2 |", "| 4 |")
        self.assertIn("lessons.md: the lessons are not numbered from 1 on", found({"lessons.md": gap}))


if __name__ == "__main__":
    unittest.main()
