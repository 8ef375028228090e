#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Contends for a lock with redis-py's Lock.

    redis_py_rival.py count PORT NAME COUNTER TIMES END   adds 1 to the number in the file COUNTER, each time under the lock; says
                                                          "enough" after TIMES of these, goes on until the file END is there, and
                                                          says how many there were
    redis_py_rival.py hold PORT NAME SECONDS END          takes the lock: says "waits" if it is refused at first, "held" when it has
                                                          it; when the file END is there it gives the lock back and says
                                                          "released", or "lost" if it had no longer been its own
    redis_py_rival.py try PORT NAME                       asks once, and says "held" or "refused"

SECONDS is the lock's timeout; "none" is redis-py's default, a key without an expiry.
"""

import os
import sys
import time

import redis
from redis.exceptions import LockNotOwnedError

POLL = 0.002  # redis-py asks again and again, by default ten times a second


def say(what):
    print(what, flush=True)


def count(client, name, counter, times, end):
    done = 0
    while done < int(times) or not os.path.exists(end):
        with client.lock(name, timeout=600, sleep=POLL):
            with open(counter, encoding="ascii") as file:
                seen = int(file.read())
            time.sleep(0.001)
            with open(counter, "w", encoding="ascii") as file:
                file.write(str(seen + 1))
        done += 1
        if done == int(times):
            say("enough")
        time.sleep(POLL)
    say(done)


def hold(client, name, seconds, end):
    lock = client.lock(name, timeout=None if seconds == "none" else float(seconds), sleep=POLL)
    if not lock.acquire(blocking=False):
        say("waits")
        lock.acquire()
    say("held")
    while not os.path.exists(end):
        time.sleep(POLL)
    try:
        lock.release()
        say("released")
    except LockNotOwnedError:
        say("lost")


def main():
    what, port, name, *rest = sys.argv[1:]
    client = redis.Redis(port=int(port))
    if what == "count":
        count(client, name, *rest)
    elif what == "hold":
        hold(client, name, *rest)
    elif what == "try":
        lock = client.lock(name, timeout=600)
        say("held" if lock.acquire(blocking=False) else "refused")
        if lock.owned():
            lock.release()


if __name__ == "__main__":
    main()
