#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that header_chains.py puts no header behind one that brings what it lacks."""

import pathlib
import tempfile
import unittest

import header_chains


def chains(texts, headers=None):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")
        return sorted(header_chains.chains(folder, headers or list(texts)))


def header(*includes, behind=""):
    return "// of it\n#pragma once\n" + "".join(f"#include <{name}>\n" for name in includes) + f"\nint x;\n{behind}"


class HeaderChains(unittest.TestCase):
    def test_one_that_includes_the_other_follows_it(self):
        self.assertEqual(chains({"a.hpp": header("string"), "b.hpp": header("a.hpp", "vector")}), [["a.hpp", "b.hpp"]])

    def test_one_that_includes_the_same_and_not_the_other_does_not(self):
        self.assertEqual(chains({"a.hpp": header("string"), "b.hpp": header("string", "vector")}), [["a.hpp"], ["b.hpp"]])

    def test_one_that_lacks_something_does_not(self):
        self.assertEqual(chains({"a.hpp": header("string"), "b.hpp": header("vector")}), [["a.hpp"], ["b.hpp"]])

    def test_what_is_included_on_a_condition_does_not_count_for_who_follows(self):
        texts = {"a.hpp": header(), "b.hpp": "#ifdef A\n#include <a.hpp>\n#endif\nint x;\n"}
        self.assertEqual(chains(texts), [["a.hpp"], ["b.hpp"]])

    def test_nor_what_is_included_in_the_end(self):
        self.assertEqual(chains({"a.hpp": header(), "b.hpp": header(behind="#include <a.hpp>\n")}), [["a.hpp"], ["b.hpp"]])

    def test_what_one_may_bring_counts_for_who_follows_it(self):
        texts = {"a.hpp": header(behind="#include <string>\n"), "b.hpp": header("a.hpp")}
        self.assertEqual(chains(texts), [["a.hpp"], ["b.hpp"]])

    def test_a_comment_includes_nothing(self):
        self.assertEqual(chains({"a.hpp": header(), "b.hpp": "// #include <a.hpp>\n" + header()}), [["a.hpp"], ["b.hpp"]])

    def test_an_error_is_nothing_of_its_own_nor_what_ends_the_compilation_behind_it(self):
        error = '#if A\n#error \\\n"no"\n#include "see the error above"\n#else\n#endif\n'
        texts = {"a.hpp": error + header("string"), "b.hpp": header("a.hpp", "vector")}
        self.assertEqual(chains(texts), [["a.hpp", "b.hpp"]])

    def test_two_that_include_each_other_stand_alone(self):
        texts = {"a.hpp": header("b.hpp"), "b.hpp": header("a.hpp")}
        self.assertEqual(chains(texts), [["a.hpp"], ["b.hpp"]])

    def test_nor_one_that_the_other_brings_in_the_end(self):
        texts = {"a.hpp": header(behind="#include <b.hpp>\nint y;\n"), "b.hpp": header("a.hpp")}
        self.assertEqual(chains(texts), [["a.hpp"], ["b.hpp"]])

    def test_each_header_is_in_one_chain(self):
        texts = {"a.hpp": header(), "b.hpp": header("a.hpp"), "c.hpp": header("a.hpp"), "d.hpp": header("b.hpp", "c.hpp")}
        found = chains(texts)
        self.assertEqual(sorted(name for chain in found for name in chain), sorted(texts))
        self.assertEqual(len(found), 2)

    def test_headers_that_were_not_named_are_in_none(self):
        self.assertEqual(chains({"a.hpp": header(), "b.hpp": header("a.hpp")}, ["b.hpp"]), [["b.hpp"]])


if __name__ == "__main__":
    unittest.main()
