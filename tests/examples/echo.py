#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the server of lines and coroutines. Ends with 1 if it does not go on after what clients can do to it: a line
without an end, and more connections than it may have open; or if a client takes a lock whose name does not begin with
echo/.

    echo.py PROGRAM URL      of a Redis server's socket
"""

import resource
import socket
import subprocess
import sys
import time

OPEN_FILES = 64


def start(program, url):
    """The server and its port: one that is free, if no other process is faster."""
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen(
            [program, url, str(port)], stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES)))
        while server.poll() is None:
            try:
                connect(port).close()
                return server, port
            except ConnectionRefusedError:
                time.sleep(0.01)
        said = server.communicate()[1]
        if "in use" not in said:
            sys.exit(f"echo.py: it ended with {server.returncode}: {said}")


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def answer(client, line):
    client.sendall(line.encode() + b"\n")
    return client.makefile().readline()


def check_answer(client, name):
    said = answer(client, f"{name} some text")
    token, _, text = said.partition(" ")
    if not token.isdigit() or text != "some text\n":
        sys.exit(f"echo.py: of {name} it says {said!r}")


def check_server(server, port, url):
    with connect(port) as client:
        check_answer(client, "orders")

    with connect(port) as client:
        try:
            for _ in range(1000):
                client.sendall(b"x" * 65536)
            sys.exit("echo.py: a line without an end is read on and on")
        except ConnectionError:
            pass

    clients = [connect(port) for _ in range(2 * OPEN_FILES)]
    if "accept" not in server.stderr.readline():
        sys.exit("echo.py: it does not say that it cannot accept clients")
    check_answer(clients[0], "orders")
    for client in clients:
        client.close()
    with connect(port) as client:
        check_answer(client, "orders")

        # Locks of other clients: of these names.
        redis = ["redis-cli", "-s", url.removeprefix("unix://")]
        for key in ("echo/held", "orders"):
            subprocess.run([*redis, "SET", key, "0123456789abcdef"], check=True, stdout=subprocess.DEVNULL)
        check_answer(client, "orders")
        if answer(client, "held some text") != "busy\n":
            sys.exit("echo.py: it takes a lock that another client holds")
    if server.poll() is not None:
        sys.exit(f"echo.py: it ended with {server.returncode}")


def main():
    server, port = start(*sys.argv[1:])
    try:
        check_server(server, port, sys.argv[2])
    finally:
        server.kill()
        server.communicate()


main()
