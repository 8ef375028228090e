# SPDX-License-Identifier: MIT
"""A real redis-server for tests in Python."""

import contextlib
import socket
import subprocess
import tempfile
import time


def command(port, *words):
    """What a server answers to one command: an integer or a bulk string."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as way, way.makefile("rwb") as stream:
        stream.write(f"*{len(words)}\r\n".encode())
        for word in (str(w).encode() for w in words):
            stream.write(b"$%d\r\n%s\r\n" % (len(word), word))
        stream.flush()
        line = stream.readline().decode().rstrip()
        if line.startswith("$"):
            return None if line == "$-1" else stream.readline().decode().rstrip()
        return int(line[1:]) if line.startswith(":") else line


@contextlib.contextmanager
def running_redis():
    """Its port, on 127.0.0.1. It keeps nothing, and ends with the block."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as server:
            try:
                for _ in range(600):
                    try:
                        command(port, "PING")
                        break
                    except OSError:
                        time.sleep(0.05)
                if server.poll() is not None:
                    raise RuntimeError("redis-server has ended")
                yield port
            finally:
                server.terminate()
