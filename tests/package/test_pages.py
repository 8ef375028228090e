#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that pages.py finds a dead link and a line that is too long, and nothing else."""

import pathlib
import tempfile
import unittest

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


if __name__ == "__main__":
    unittest.main()
