#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the include law: which header of holdfast may include which.

    include_law.py INCLUDE_FOLDER        e.g. include

The arrows of the design hold only as long as somebody looks: core knows nobody, a backend can be taken
away without a trace, a fake is not written from the algorithm it tests, and a C library is named in one
place. Prints every breach and exits with 1 if there is one. test_include_law.py shows that it can.
"""

import pathlib
import re
import sys

# Folder -> the folders whose headers it may include, besides its own. Umbrella headers stand at the top.
FOLDERS = {
    "core": set(),
    "io": {"core"},
    "lock": {"core"},
    "adapters": {"core", "lock"},
    "quorum": {"core"},
    "memory": {"core", "io", "quorum"},
    "redis": {"core", "quorum", "io"},
    "redlock": {"core", "quorum", "io", "redis"},
    "tls": {"core", "io"},
    "zookeeper": {"core", "io"},
    "sim": {"core", "quorum", "redis", "redlock"},
    "asio": {"core"},
    "impl": {"core", "io", "lock", "quorum", "memory", "redis", "redlock", "zookeeper"},
}
UMBRELLAS = {
    "holdfast.hpp": {"core", "lock", "adapters"},
    "mutex.hpp": {"core", "lock"},
    "fair_mutex.hpp": {"core", "lock"},
    "semaphore.hpp": {"core", "adapters"},
    "shared_mutex.hpp": {"core", "lock", "adapters"},
    "election.hpp": {"core", "lock", "adapters"},
    "make_store.hpp": {"core", "impl"},
    "memory.hpp": {"core", "memory", "impl"},
    "redis.hpp": {"core", "redis", "impl"},
    "redlock.hpp": {"core", "redis", "redlock", "impl"},
    "tls.hpp": {"core", "io", "tls"},
    "zookeeper.hpp": {"core", "zookeeper", "impl"},
    "asio.hpp": {"core", "asio"},
    "boost_asio.hpp": {"core", "asio"},
    "sim.hpp": {"core", "lock", "adapters", "sim"},
}
# What every store's header, and what stands beside them, may include of these.
LIGHT = {"holdfast.hpp", "fair_mutex.hpp", "mutex.hpp", "semaphore.hpp", "shared_mutex.hpp"}
# Folder -> what it may not include although the folder is open to it, and why.
CLOSED = {
    "redlock": [(r"redis/hiredis\.hpp", "only the redis folder reaches hiredis")],
    "sim": [
        (r".*_machine\.hpp|quorum/(acquire_round|quorum_poll)\.hpp", "a fake written from the algorithm would share its mistakes"),
        (r"redis/hiredis\.hpp", "the simulator does no I/O"),
    ],
}
# Library -> the one header that may include it.
C_LIBRARIES = {
    "asio": "asio.hpp",
    "boost": "boost_asio.hpp",
    "hiredis": "redis/hiredis.hpp",
    "openssl": "tls/openssl.hpp",
    "zookeeper": "zookeeper/zookeeper_mt.hpp",
    "zookeeper.h": "zookeeper/zookeeper_mt.hpp",
}

# What every header that a user includes includes first.
LANGUAGE = "core/language.hpp"
# What a header includes where a compiler is too old, or a library is in none of the places where it may be: nothing that is there.
STOPS = {
    LANGUAGE: "see the error above",
    "zookeeper/zookeeper_mt.hpp": "zookeeper/zookeeper.h, of ZooKeeper's C client (Debian: libzookeeper-mt-dev)",
}

# What is written once for two libraries of one shape: each of two headers includes it, under other names.
INCLUDED_AGAIN = {"asio/functions.hpp", "asio/handlers.hpp", "asio/operations.hpp"}

LINES_AT_MOST = 300
LICENCE = "// SPDX-License-Identifier: MIT"

STANDARD = set(
    """
    algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono
    cinttypes climits clocale cmath codecvt compare complex concepts condition_variable coroutine csetjmp
    csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque exception
    execution expected filesystem format forward_list fstream functional future initializer_list iomanip
    ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex new
    numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set
    shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
    syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility
    valarray variant vector version
    """.split()
)
OPERATING_SYSTEM = re.compile(
    r"(sys|linux|arpa|netinet)/\w+\.h|(errno|fcntl|netdb|poll|pthread|sched|semaphore|signal|time|unistd)\.h"
)

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)


def folder_of(header):
    return header.split("/")[0] if "/" in header else ""


def breaches_of_include(header, target, headers):
    """What is wrong with `header` including `target`, both relative to include/holdfast."""
    if target not in headers:
        yield f"includes holdfast/{target}, which does not exist"
        return
    here, there = folder_of(header), folder_of(target)
    if there == "":
        if here not in ("", "asio", "adapters") or target not in LIGHT:
            yield f"includes the umbrella header holdfast/{target}"
        return
    allowed = FOLDERS[here] | {here} if here else UMBRELLAS[header]
    if there not in allowed:
        yield f"includes holdfast/{target}: {here or 'it'} may not include {there}"
    if "/detail/" in target and here != there:
        yield f"includes holdfast/{target}: detail is for the folder {there} alone"
    for pattern, why in CLOSED.get(here, []):
        if re.fullmatch(pattern, target):
            yield f"includes holdfast/{target}: {why}"


def breaches_of_outside(header, target):
    """What is wrong with `header` including `target`, a header that is not ours."""
    library = target.split("/")[0]
    if library in C_LIBRARIES:
        if header != C_LIBRARIES[library]:
            yield f"includes <{target}>: only holdfast/{C_LIBRARIES[library]} may"
    elif target not in STANDARD and not OPERATING_SYSTEM.fullmatch(target):
        yield f"includes <{target}>, neither the standard library, the operating system nor a known library"


def cycle_in(graph):
    """Some path of headers that comes back to its start, or None."""
    done, path = set(), []

    def visit(header):
        if header in path:
            return path[path.index(header):] + [header]
        if header in done:
            return None
        path.append(header)
        for target in sorted(graph.get(header, ())):
            found = visit(target)
            if found:
                return found
        path.pop()
        done.add(header)
        return None

    for header in sorted(graph):
        found = visit(header)
        if found:
            return found
    return None


def breaches(include_folder):
    """Every breach of the law under include_folder, as (header, sentence)."""
    root = pathlib.Path(include_folder) / "holdfast"
    headers = {path.relative_to(root).as_posix(): path for path in root.rglob("*.hpp")}
    if not headers:
        return [(str(root), "has no headers")]
    found, graph = [], {}
    for header, path in sorted(headers.items()):
        text = path.read_text(encoding="utf-8")
        say = lambda sentence: found.append((header, sentence))  # noqa: E731
        if len(text.splitlines()) > LINES_AT_MOST:
            say(f"has {len(text.splitlines())} lines, {LINES_AT_MOST} at most are allowed")
        if header not in INCLUDED_AGAIN and not re.search(r"^#pragma once$", text, re.MULTILINE):
            say("has no #pragma once")
        if LICENCE not in text.splitlines()[:3]:
            say(f"does not begin with {LICENCE}")
        here = folder_of(header)
        if here not in FOLDERS and header not in UMBRELLAS:
            say("is in no folder and is no umbrella header that the law knows: add a line to include_law.py")
            continue
        includes = INCLUDE.findall(COMMENT.sub("", text))
        if header in UMBRELLAS and (not includes or includes[0][0] != f"holdfast/{LANGUAGE}"):
            say(f"does not include <holdfast/{LANGUAGE}> first, which says what a compiler lacks")
        for angled, quoted in includes:
            if quoted and quoted == STOPS.get(header):
                continue
            if quoted:
                say(f'includes "{quoted}": write <holdfast/…>, which is the same from everywhere')
            elif angled.startswith("holdfast/"):
                target = angled[len("holdfast/"):]
                graph.setdefault(header, set()).add(target)
                for sentence in breaches_of_include(header, target, headers):
                    say(sentence)
            else:
                for sentence in breaches_of_outside(header, angled):
                    say(sentence)
    cycle = cycle_in(graph)
    if cycle:
        found.append((cycle[0], "is in a cycle: " + " -> ".join(cycle)))
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = breaches(sys.argv[1])
    for header, sentence in found:
        print(f"holdfast/{header} {sentence}")
    print(f"{len(found)} breaches of the include law")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
