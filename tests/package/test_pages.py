#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that pages.py finds a dead link and a line that is too long, and page_programs.py a piece that does not do what
the page says, and nothing else."""

import contextlib
import io
import pathlib
import tempfile
import unittest

from page_programs import check_piece, pieces_program
from pages import dead_links, long_lines

PAGE = f"""# A page

See [the section](#a-section), [the other page](other.md#its-section) and [a site](https://redis.example/).

| a row | {"may be long" * 20} |

    {"so may code" * 20}

```sh
{"and this" * 20}
```

## A section
"""


def found(look, page):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "other.md").write_text("# Other\n\n## Its section\n", encoding="utf-8")
        path = pathlib.Path(folder, "page.md")
        path.write_text(page, encoding="utf-8")
        return [one.removeprefix(str(path)) for one in look(path)]


class Pages(unittest.TestCase):
    def test_a_page_without_a_breach_is_taken(self):
        self.assertEqual(found(dead_links, PAGE), [])
        self.assertEqual(found(long_lines, PAGE), [])

    def test_a_link_to_no_page_is_named(self):
        self.assertEqual(found(dead_links, PAGE.replace("other.md", "another.md")),
                         [": there is no another.md#its-section"])

    def test_a_link_to_no_heading_is_named(self):
        self.assertEqual(found(dead_links, PAGE.replace("(#a-section)", "(#section)")),
                         [": there is no heading #section"])
        self.assertEqual(found(dead_links, PAGE.replace("#its-section", "#section")),
                         [": there is no heading other.md#section"])

    def test_a_long_line_of_prose_is_named(self):
        for begin in ("", "- ", "  ", "> "):
            line = begin + "x" * (121 - len(begin))
            self.assertEqual(found(long_lines, f"{PAGE}\n{line}\n"),
                             [":15: 121 characters; a line of prose has at most 120"])
            self.assertEqual(found(long_lines, f"{PAGE}\n{line[:-1]}\n"), [])


PIECE = """ship();
db.write(row, 42);
bool const got = m.try_lock();                            // false
m.unlock(ec);  // lease_lost
std::cout << "3 of 4, in 0.2 ms\\n";    // 3 of 4, in 0.2 ms
"""


class Pieces(unittest.TestCase):
    def check(self, said, noted="shipped\nwritten", status=0):
        """How a piece is judged that prints and notes this, and ends with this status: None, or what is wrong."""
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder, "pieces")
            made.write_text(f"#!/bin/sh\necho '{said}'\necho '{noted}' >&2\nexit {status}\n", encoding="utf-8")
            made.chmod(0o700)
            with contextlib.redirect_stdout(io.StringIO()):
                try:
                    return check_piece(made, "page_0::piece_0", "page, 0", PIECE)
                except SystemExit as refused:
                    return refused.code

    def test_what_does_as_the_page_says_is_taken(self):
        self.assertIsNone(self.check("3 of 4, in 7.5 ms"))

    def test_what_does_something_else_is_named(self):
        self.assertIn("as the page says", self.check("4 of 4, in 0.2 ms"))
        self.assertIn("has not shipped", self.check("3 of 4, in 0.2 ms", noted="written"))
        self.assertIn("has not written", self.check("3 of 4, in 0.2 ms", noted="shipped"))
        self.assertIn("ended with 1", self.check("3 of 4, in 0.2 ms", status=1))

    def test_the_results_that_comments_tell_are_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.md")
            page.write_text(f"```cpp\n#include <mutex>\n{PIECE}```\n", encoding="utf-8")
            source, named = pieces_program([page])
        self.assertEqual(list(named), ["page_0::piece_0"])
        self.assertIn("check(got == false, __LINE__);", source)
        self.assertIn("check(ec == holdfast::errc::lease_lost, __LINE__);", source)


if __name__ == "__main__":
    unittest.main()
