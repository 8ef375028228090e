# SPDX-License-Identifier: MIT
"""One process of a crowd, with redis-py's lock: redis_py.py SECONDS SECTION_US PORT

Says "ready" when it has had a lock once, and begins when it is told to. At the end it says how many sections it had, and
how long it waited at most, in seconds.
"""

import os
import sys
import time

import redis

seconds, section, port = float(sys.argv[1]), int(sys.argv[2]) * 1e-6, int(sys.argv[3])
client = redis.Redis(port=port)


def once(name):
    lock = client.lock(name, timeout=30)
    begun = time.monotonic()
    lock.acquire()
    waited = time.monotonic() - begun
    if section > 0:
        time.sleep(section)
    lock.release()
    return waited


once(f"warm-up of {os.getpid()}")
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + seconds
sections, longest = 0, 0.0
while time.monotonic() < end:
    longest = max(longest, once("orders"))
    sections += 1
print(sections, longest, flush=True)
