#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that spelling.py refuses what it should, and nothing else."""

import unittest

from spelling import findings

PAGE = """# A page

A lock of `hiredis` has a ttl, see [the next page](docs/nxet.md) and <https://redis.example/>.

    ./run.sh wrods

```cpp
int wrods = 0;
```
"""


def found(page, words=("ttl",)):
    return list(findings([("page.md", page)], list(words)))


class Spelling(unittest.TestCase):
    def test_code_and_listed_words_are_taken(self):
        self.assertEqual(found(PAGE), [])

    def test_a_misspelt_word_is_named(self):
        self.assertEqual(found(PAGE + "\nIt is renwed.\n"), ["page.md: renwed"])
        self.assertEqual(found(PAGE.replace("A page", "A paeg")), ["page.md: paeg"])
        self.assertEqual(found(PAGE.replace("next page", "nxet page")), ["page.md: nxet"])

    def test_the_text_of_a_list_is_no_code(self):
        self.assertEqual(found(PAGE + "\n- one\n    renwed\n"), ["page.md: renwed"])

    def test_a_listed_word_that_no_page_has_is_named(self):
        self.assertEqual(found(PAGE, ["etcd", "ttl"]), ["the word list: etcd is in no page"])

    def test_the_list_is_in_order(self):
        page = PAGE + "\nOf etcd.\n"
        self.assertEqual(found(page, ["ttl", "etcd"]), ["the word list: not in the order of `LC_ALL=C sort -u`"])


if __name__ == "__main__":
    unittest.main()
