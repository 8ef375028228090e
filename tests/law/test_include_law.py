#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that include_law.py refuses what it should: each test feeds it a tree with one breach."""

import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

import include_law

TOP = "// SPDX-License-Identifier: MIT\n#pragma once\n"


def header(*includes):
    return TOP + "".join(f"#include <{name}>\n" for name in includes)


def umbrella(*includes):
    return header("holdfast/core/language.hpp", *includes)


# A tree that keeps the law; every test below adds or replaces one header of it.
LAWFUL = {
    "core/language.hpp": TOP + '#include "see the error above"\n',
    "core/error.hpp": header("system_error", "sys/random.h"),
    "core/result.hpp": header("holdfast/core/error.hpp"),
    "io/reactor.hpp": header("poll.h", "holdfast/core/error.hpp"),
    "lock/wait_queue.hpp": header("mutex", "holdfast/core/result.hpp"),
    "lock/detail/queue.hpp": header("holdfast/lock/wait_queue.hpp"),
    "adapters/any_mutex.hpp": header("holdfast/lock/wait_queue.hpp", "holdfast/core/error.hpp"),
    "memory/store.hpp": header("holdfast/core/result.hpp"),
    "redis/hiredis.hpp": header("hiredis/hiredis.h", "holdfast/io/reactor.hpp"),
    "redis/commands.hpp": header("string", "holdfast/core/result.hpp"),
    "redis/lock_machine.hpp": header("holdfast/redis/commands.hpp"),
    "tls/openssl.hpp": header("openssl/ssl.h", "holdfast/io/reactor.hpp"),
    "redlock/masters.hpp": header("holdfast/redis/lock_machine.hpp", "holdfast/io/reactor.hpp"),
    "sim/world.hpp": header("holdfast/redis/commands.hpp", "holdfast/core/error.hpp"),
    "impl/memory.hpp": header("holdfast/memory/store.hpp", "holdfast/lock/wait_queue.hpp"),
    "impl/redis.hpp": header("holdfast/redis/hiredis.hpp", "holdfast/lock/wait_queue.hpp"),
    "asio/handlers.hpp": header("holdfast/core/error.hpp"),
    "asio.hpp": umbrella("asio/post.hpp", "holdfast/asio/handlers.hpp", "holdfast/mutex.hpp"),
    "mutex.hpp": umbrella("holdfast/core/error.hpp"),
    "holdfast.hpp": umbrella("holdfast/adapters/any_mutex.hpp", "holdfast/mutex.hpp"),
    "memory.hpp": umbrella("holdfast/mutex.hpp", "holdfast/impl/memory.hpp"),
    "redis.hpp": umbrella("holdfast/redis/commands.hpp", "holdfast/impl/redis.hpp", "holdfast/mutex.hpp"),
    "tls.hpp": umbrella("holdfast/tls/openssl.hpp", "holdfast/core/error.hpp"),
    "redlock.hpp": umbrella("holdfast/redlock/masters.hpp", "holdfast/mutex.hpp", "holdfast/impl/redis.hpp"),
}


def judge(changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**LAWFUL, **changes}.items():
            path = pathlib.Path(folder, "holdfast", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return include_law.breaches(folder)


class IncludeLaw(unittest.TestCase):
    def refused(self, name, text, sentence):
        found = judge({name: text})
        self.assertEqual([where for where, _ in found], [name], found)
        self.assertIn(sentence, found[0][1])

    def allowed(self, name, text):
        self.assertEqual(judge({name: text}), [])

    def test_a_lawful_tree_passes(self):
        self.assertEqual(judge({}), [])

    def test_a_folder_without_headers_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(len(include_law.breaches(folder)), 1)

    def test_arrows_that_point_the_wrong_way(self):
        # One target in each folder stands for it.
        example = {
            "core": "core/error.hpp",
            "io": "io/reactor.hpp",
            "lock": "lock/wait_queue.hpp",
            "adapters": "adapters/any_mutex.hpp",
            "memory": "memory/store.hpp",
            "redis": "redis/commands.hpp",
            "redlock": "redlock/masters.hpp",
            "tls": "tls/openssl.hpp",
            "sim": "sim/world.hpp",
        }
        # The law again, in words: core and no one else; lock core; adapters lock; a backend core and io.
        may = {
            ("io", "core"), ("lock", "core"), ("adapters", "core"), ("adapters", "lock"),
            ("memory", "core"), ("memory", "io"), ("redis", "core"), ("redis", "io"),
            ("redlock", "core"), ("redlock", "io"), ("redlock", "redis"),
            ("tls", "core"), ("tls", "io"),
            ("sim", "core"), ("sim", "redis"), ("sim", "redlock"),
        }  # fmt: skip
        for here in example:
            for there in example:
                if here == there:
                    continue
                with self.subTest(here=here, there=there):
                    name, text = f"{here}/new.hpp", header(f"holdfast/{example[there]}")
                    if (here, there) in may:
                        self.allowed(name, text)
                    else:
                        self.refused(name, text, f"{here} may not include {there}")

    def test_an_umbrella_does_not_include_another_backend(self):
        self.refused("memory.hpp", umbrella("holdfast/redis/commands.hpp"), "may not include redis")
        self.refused("redis.hpp", umbrella("holdfast/redlock/masters.hpp"), "may not include redlock")
        self.refused("redlock.hpp", umbrella("holdfast/redis.hpp"), "umbrella")
        self.refused("holdfast.hpp", umbrella("holdfast/memory/store.hpp"), "may not include memory")
        self.refused("redis.hpp", umbrella("holdfast/tls/openssl.hpp"), "may not include tls")
        self.refused("impl/redis.hpp", header("holdfast/tls/openssl.hpp"), "may not include tls")
        self.refused("mutex.hpp", umbrella("holdfast/impl/redis.hpp"), "may not include impl")

    def test_an_umbrella_first_looks_at_the_language(self):
        self.refused("memory.hpp", header("holdfast/impl/memory.hpp", "holdfast/core/language.hpp"), "first")
        self.refused("tls.hpp", TOP, "first")
        self.refused("core/new.hpp", TOP + '#include "see the error above"\n', "write <holdfast/")

    def test_nothing_in_a_folder_includes_an_umbrella(self):
        self.refused("redlock/new.hpp", header("holdfast/redis.hpp"), "umbrella")
        self.refused("redis/new.hpp", header("holdfast/holdfast.hpp"), "umbrella")
        self.refused("redis/new.hpp", header("holdfast/mutex.hpp"), "umbrella")

    def test_redlock_does_not_include_hiredis_hpp(self):
        self.refused("redlock/new.hpp", header("holdfast/redis/hiredis.hpp"), "hiredis")

    def test_sim_does_not_include_a_machine(self):
        self.refused("sim/new.hpp", header("holdfast/redis/lock_machine.hpp"), "share its mistakes")

    def test_sim_does_not_include_hiredis_hpp(self):
        self.refused("sim/new.hpp", header("holdfast/redis/hiredis.hpp"), "no I/O")

    def test_a_c_library_is_included_in_one_place(self):
        self.refused("redis/new.hpp", header("hiredis/async.h"), "only holdfast/redis/hiredis.hpp may")
        self.refused("io/new.hpp", header("openssl/ssl.h"), "only holdfast/tls/openssl.hpp may")
        self.refused("tls/new.hpp", header("openssl/err.h"), "only holdfast/tls/openssl.hpp may")
        self.allowed("zookeeper/zookeeper_mt.hpp", header("zookeeper/zookeeper.h", "zookeeper.h"))
        self.refused("zookeeper/new.hpp", header("zookeeper.h"), "only holdfast/zookeeper/zookeeper_mt.hpp may")

    def test_a_library_nobody_knows(self):
        self.refused("core/new.hpp", header("fmt/format.h"), "neither the standard library")

    def test_detail_of_another_folder(self):
        self.refused("adapters/new.hpp", header("holdfast/lock/detail/queue.hpp"), "detail is for")
        self.allowed("lock/new.hpp", header("holdfast/lock/detail/queue.hpp"))

    def test_a_header_that_does_not_exist(self):
        self.refused("lock/new.hpp", header("holdfast/core/nothing.hpp"), "does not exist")

    def test_a_quoted_include(self):
        self.refused("lock/new.hpp", TOP + '#include "basic_mutex.hpp"\n', "write <holdfast/")

    def test_a_folder_the_law_does_not_know(self):
        self.refused("misc/new.hpp", TOP, "that the law knows")
        self.refused("misc.hpp", TOP, "that the law knows")

    def test_a_cycle(self):
        found = judge({"core/error.hpp": header("holdfast/core/result.hpp")})
        self.assertEqual([sentence for _, sentence in found],
                         ["is in a cycle: core/error.hpp -> core/result.hpp -> core/error.hpp"])
        self.refused("core/new.hpp", header("holdfast/core/new.hpp"), "cycle")

    def test_the_length_of_a_header(self):
        self.allowed("core/new.hpp", TOP + "//\n" * 298)
        self.refused("core/new.hpp", TOP + "//\n" * 299, "301 lines")

    def test_pragma_once(self):
        self.refused("core/new.hpp", "// SPDX-License-Identifier: MIT\n// #pragma once\n", "#pragma once")

    def test_the_licence(self):
        self.refused("core/new.hpp", "#pragma once\n", "SPDX")

    def test_an_include_in_a_comment_is_no_include(self):
        self.allowed("core/new.hpp", TOP + "/*\n#include <holdfast/redis.hpp>\n*/\n// #include <fmt/format.h>\n")

    def test_spacing_hides_nothing(self):
        self.refused("core/new.hpp", TOP + "  #  include  <fmt/format.h>  // yes\n", "neither the standard library")

    def test_the_exit_status_tells(self):
        for changes, status in (({}, 0), ({"core/new.hpp": ""}, 1)):
            with self.subTest(status=status), tempfile.TemporaryDirectory() as folder:
                for name, text in {**LAWFUL, **changes}.items():
                    path = pathlib.Path(folder, "holdfast", name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
                with mock.patch("sys.argv", ["include_law.py", folder]), contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(include_law.main(), status)


if __name__ == "__main__":
    unittest.main()
