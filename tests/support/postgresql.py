#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Starts a real PostgreSQL server for a test, on a socket in a folder of its own, and ends it.

    postgresql.py COMMAND [ARGUMENT...]      in the arguments @postgresql stands for how libpq connects to the server

Ends with the status of the command.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def program(name):
    """Debian has those of the server outside of PATH."""
    elsewhere = map(str, sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))
    found = shutil.which(name) or next(elsewhere, None)
    return found or sys.exit(f"{sys.argv[0]}: there is no {name} (package postgresql)")


@contextlib.contextmanager
def running_server():
    """Gives: how libpq connects to it."""
    # It does not run as root.
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        if user:
            shutil.chown(folder, user["user"], user["group"])
        data = os.path.join(folder, "data")
        subprocess.run([program("initdb"), "-D", data, "-U", "app", "-A", "trust", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)
        command = [program("postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        with open(os.path.join(folder, "log"), "w+b") as log, subprocess.Popen(
                ["setpriv", "--pdeathsig", "INT", *command], stdout=log, stderr=log, cwd=folder, **user) as server:
            try:
                # It answers when this file says so.
                lines = pathlib.Path(data, "postmaster.pid")
                while not (lines.exists() and lines.read_text(encoding="utf-8").rstrip().endswith("ready")):
                    if server.poll() is not None:
                        log.seek(0)
                        sys.exit(f"{sys.argv[0]}: PostgreSQL did not start: {log.read().decode()}")
                    time.sleep(0.02)
                yield f"host={folder} user=app dbname=postgres"
            finally:
                server.send_signal(signal.SIGINT)  # does not wait for its clients


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with running_server() as where:
        sys.exit(subprocess.run([one.replace("@postgresql", where) for one in sys.argv[1:]], check=False).returncode)
