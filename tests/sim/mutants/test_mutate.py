#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that mutate.py puts a mutant in the line that is marked, and refuses what it should."""

import sys
import unittest

sys.dont_write_bytecode = True
from mutants import mutant  # noqa: E402
from mutate import Wrong, mutated  # noqa: E402

IN = "::holdfast::is_mutant(1)"


def put(*lines, **mutants):
    return mutated({"a.hpp": "\n".join(lines)}, mutants)["a.hpp"].split("\n")


class MutantsAreWhereTheMarkersAre(unittest.TestCase):
    def test_a_text_of_the_marked_line_is_replaced(self):
        late = mutant((), ("1", "MUTANT"))
        self.assertEqual(put("ask(1);", "  ask(1);  // mutant: late", late=late), ["ask(1);", f"  ask({IN});"])

    def test_a_marker_alone_speaks_of_the_next_line(self):
        late = mutant((), "if (MUTANT) LINE")
        self.assertEqual(put("  // mutant: late", "  ask();", late=late), ["", f"  if ({IN}) ask();"])

    def test_the_header_knows_what_a_mutant_is(self):
        put_in = put("#pragma once", "ask();  // mutant: late", late=mutant((), "if (MUTANT) LINE"))
        self.assertIn("#include <holdfast/mutant.hpp>", put_in)

    def test_several_share_a_line(self):
        both = {"late": mutant((), "if (MUTANT) LINE"), "early": mutant((), ("ask(", "ask(MUTANT"))}
        self.assertEqual(put("ask();  // mutant: late, early", **both), [f"if ({IN}) ask(::holdfast::is_mutant(2));"])

    def test_one_changes_several_lines_in_their_order(self):
        self.assertEqual(
            put("a;  // mutant: late", "ask();  // mutant: late", late=mutant((), "LINE b;", ("ask(", "ask(MUTANT"))),
            ["a; b;", f"ask({IN});"],
        )

    def refused(self, why, *lines, **mutants):
        with self.assertRaisesRegex(Wrong, why):
            put(*lines, **mutants)

    def test_what_does_not_fit_is_refused(self):
        late = mutant((), ("1", "MUTANT"))
        self.refused("a.hpp:2: there is no mutant early", "", "ask(1);  // mutant: early")
        self.refused("late: 0 lines are marked, not 1", "ask(1);", late=late)
        twice = mutant((), "MUTANT", "LINE")
        self.refused("late: 1 lines are marked, not 2", "ask(1);  // mutant: late", late=twice)
        self.refused("more lines are marked .*: late", *["ask(1);  // mutant: late"] * 2, late=late)
        self.refused("late: the marked line has this text 0 times", "ask(2);  // mutant: late", late=late)
        self.refused("late: the marked line has this text 2 times", "ask(1, 1);  // mutant: late", late=late)
        self.refused("late: it is the same", "ask(1);  // mutant: late", late=mutant((), ("1", "2")))
        self.refused("no code on the line after: late", "// mutant: late", "", late=late)
        self.refused("no code on the line after: late", "// mutant: late", late=late)


if __name__ == "__main__":
    unittest.main()
