#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the SQL, the script and the shell functions of a page that say how a fencing token is checked: SQLite, a real
PostgreSQL and a real redis-server, sh, and a server of objects over HTTP. Ends with 1 if one takes what it has to
refuse, or the other way round.

    token_checks.py PAGE
"""

import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from object_server import running_objects  # noqa: E402
from postgresql import program, running_server  # noqa: E402
from redis_server import command, running_redis  # noqa: E402

# What each way is asked: the token, and whether the write is to be taken.
WRITES = [(0, False), (33, True), (33, True), (1764200000000034, True), (33, False), (1764200000000033, False),
          (1764200000000034, True), (1764200000000035, True), (34, False),
          (0, False)]


def pieces(page, language):
    found = re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    if not found:
        sys.exit(f"token_checks.py: the page has no {language}")
    return found


def check(name, write, read):
    """`write(token, value)` returns whether it was taken; `read()` the value that stands."""
    stands = None
    for number, (token, taken) in enumerate(WRITES):
        if write(token, str(number)) != taken:
            sys.exit(f"token_checks.py: {name}: the write with token {token} was {'refused' if taken else 'taken'}")
        stands = str(number) if taken else stands
        if read() != stands:
            sys.exit(f"token_checks.py: {name}: {read()} stands and not {stands}")
    print(f"{name}: {len(WRITES)} writes", flush=True)


def check_sql(statement):
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance TEXT, fence BIGINT NOT NULL DEFAULT 0)")
    if statement.startswith("UPDATE"):
        database.execute("INSERT INTO accounts (id) VALUES (42)")
    check("SQLite, " + statement.split()[0], lambda token, value: database.execute(
        statement, {"id": 42, "token": token, "value": value}).rowcount == 1,
          lambda: database.execute("SELECT max(balance) FROM accounts WHERE id = 42").fetchone()[0])


def check_postgresql(statements):
    """With the values as parameters, as a program sends them: the server infers their types."""
    with running_server() as where:
        def sql(text):
            done = subprocess.run(
                [program("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-v", "QUIET=off", where],
                input=text, text=True, capture_output=True, check=False)
            if done.returncode != 0:
                sys.exit(f"token_checks.py: PostgreSQL: {done.stderr}")
            return done.stdout.rstrip("\n").split("\n")

        for statement in statements:
            verb = statement.split()[0]
            sql("DROP TABLE IF EXISTS accounts;"
                "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT, fence BIGINT NOT NULL DEFAULT 0);")
            if verb == "UPDATE":
                sql("INSERT INTO accounts (id) VALUES (42);")
            numbered = statement
            for number, name in enumerate(("id", "value", "token"), 1):
                numbered = numbered.replace(f":{name}", f"${number}")
            check("PostgreSQL, " + verb, lambda token, value: sql(
                f"PREPARE write AS {numbered};\nEXECUTE write(42, {value}, {token});")[-1].split()[-1] == "1",
                  lambda: sql("SELECT max(balance) FROM accounts WHERE id = 42;")[0] or None)


def check_redis(script):
    with running_redis() as port:
        check("Redis", lambda token, value: command(
            port, "EVAL", script, 2, "account:{42}", "fence:{42}", value, token) == 1,
              lambda: command(port, "GET", "account:{42}"))


def shell(page, function, where, token, value):
    """The status with which the function of the page ends."""
    text = next((one for one in pieces(page, "sh") if one.startswith(function)), None)
    if text is None:
        sys.exit(f"token_checks.py: the page has no {function}")
    return subprocess.run(["sh", "-c", f'{text}\n{function} "$@"', "sh", where, str(token)], input=value.encode(),
                          check=False, stderr=subprocess.DEVNULL,
                          env={**os.environ, "no_proxy": "127.0.0.1"}).returncode


def check_file(page):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "account")
        check("file", lambda token, value: shell(page, "fenced_write", str(file), token, value) == 0,
              lambda: file.read_text(encoding="utf-8").split("\n", 1)[1] if file.exists() else None)


def check_http(page):
    def put(server, token, value):
        return shell(page, "fenced_put", server.url + "/account", token, value)

    def stands(server):
        body, _ = server.objects.get("/account", (None, 0))
        return body and body.decode()

    with running_objects() as server:
        check("HTTP", lambda token, value: put(server, token, value) == 0,
              lambda: stands(server) and stands(server).split("\n", 1)[1])

    def in_between(token, other, first=None, **settings):
        """How the write with `token` ends if that with `other` comes between its reading and its writing, and what
        stands then."""
        with running_objects(**settings) as server:
            if first and put(server, first, "first") != 0:
                sys.exit("token_checks.py: HTTP: the first write was refused")
            others = []
            server.before_answer = lambda: others.append(put(server, other, "other"))
            ended = put(server, token, "own")
            if others != [0]:
                sys.exit(f"token_checks.py: HTTP: the write in between ended with {others}")
            return ended, stands(server)

    for asked, told in [
            (in_between(40, 41), (1, "41\nother")),
            (in_between(40, 41, first=39), (1, "41\nother")),
            (in_between(40, 39, first=39), (0, "40\nown")),
            # A server that does not compare is no good, and this is noticed here.
            (in_between(40, 41, first=39, compares=False), (0, "40\nown"))]:
        if asked != told:
            sys.exit(f"token_checks.py: HTTP: a write with another one in between: {asked} in place of {told}")

    # Without an ETag, with a weak one, and when the answer breaks off in the token that stands.
    for settings in ({"tag": ""}, {"tag": 'W/"N"'}, {"longest": 4}):
        with running_objects(**settings) as server:
            ended = put(server, 1764200000000034, "first"), put(server, 1764200000000035, "own"), stands(server)
            if ended != (0, 2, "1764200000000034\nfirst"):
                sys.exit(f"token_checks.py: HTTP: {settings}: {ended}")
    with running_objects() as server:
        def change():  # each time that it is read
            server.objects["/account"] = (b"39\nother", server.objects.get("/account", (None, 0))[1] + 1)
            server.before_answer = change
        server.before_answer = change
        ended = put(server, 40, "own"), stands(server)
        if ended != (2, "39\nother"):
            sys.exit(f"token_checks.py: HTTP: with another write in between each time: {ended}")
    if put(server, 40, "own") != 2:
        sys.exit("token_checks.py: HTTP: a write to a server that is gone was not reported")


def main():
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    for statement in pieces(page, "sql"):
        check_sql(statement.strip())
    check_postgresql([statement.strip() for statement in pieces(page, "sql")])
    check_redis(pieces(page, "lua")[0])
    check_file(page)
    check_http(page)


main()
