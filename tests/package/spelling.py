#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks for words in pages that neither aspell's British dictionary nor a word list knows. Code is left out: blocks,
inline code, and what links lead to. Ends with 1 if a word is not known, or a word of the list is in no page.

    spelling.py WORD_LIST PAGE...        e.g. tests/package/words.txt README.md docs/*.md

The list has a word a line, in the order of `LC_ALL=C sort`, and counts upper and lower case.
"""

import pathlib
import re
import subprocess
import sys

CODE = [
    re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE),
    re.compile(r"(?:\A|(?<=\n\n))(?: {4}.*\n|\n)+", re.MULTILINE),
    re.compile(r"``.*?``|`[^`]*`", re.DOTALL),
    re.compile(r"(?<=\])\([^)]*\)"),
    re.compile(r"<[^>]*>|\bhttps?://\S+"),
]


def prose(page):
    """The page without its code."""
    for pattern in CODE:
        page = pattern.sub(" ", page)
    return page


def unknown_to_aspell(text):
    """The words of the text that aspell does not know."""
    command = ["aspell", "list", "--lang=en_GB", "--encoding=utf-8", "--ignore=1"]
    said = subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.PIPE).stdout
    return {word.removesuffix("'s") for word in said.split()}


def findings(pages, words):
    """What is wrong with the pages, as (name, text), and with the list of words."""
    asked = {name: unknown_to_aspell(prose(text)) for name, text in pages}
    for name, found in asked.items():
        yield from (f"{name}: {word}" for word in sorted(found - set(words)))
    used = set().union(*asked.values())
    yield from (f"the word list: {word} is in no page" for word in words if word not in used)
    if words != sorted(set(words)):
        yield "the word list: not in the order of `LC_ALL=C sort -u`"


if __name__ == "__main__":
    listed = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").split()
    wrong = list(findings([(one, pathlib.Path(one).read_text(encoding="utf-8")) for one in sys.argv[2:]], listed))
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)
