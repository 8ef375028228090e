#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Contends for a lock with kazoo's Lock.

    kazoo_rival.py count HOSTS PATH NAMES COUNTER TIMES   adds TIMES to the number in the file COUNTER, each time under the lock
    kazoo_rival.py hold HOSTS PATH NAMES                  takes the lock, says so, and keeps it until it is killed
    kazoo_rival.py contenders HOSTS PATH NAMES            prints who has the lock and who waits, one a line
    kazoo_rival.py hold-read HOSTS PATH NAMES             as hold, with ReadLock
    kazoo_rival.py hold-write HOSTS PATH NAMES            as hold, with WriteLock
    kazoo_rival.py try-read HOSTS PATH NAMES              asks once, with ReadLock, and says "held" or "refused"
    kazoo_rival.py try-write HOSTS PATH NAMES             the same with WriteLock
    kazoo_rival.py hold-permit HOSTS PATH MAX             as hold, with one of MAX permits of a Semaphore
    kazoo_rival.py try-permit HOSTS PATH MAX              asks once for one of them, and says "held", "refused" or why not
    kazoo_rival.py permits HOSTS PATH MAX FOLDER TIMES    takes one TIMES times, in each of two threads, with a file in FOLDER while
                                                          it is held; says "too many" if there are more than MAX of these

NAMES is "kazoo"; "curator" where the others' nodes have Curator's names, which kazoo heeds; or "common", where its own nodes are
called as Curator's, too: Curator does not order what is called otherwise.
"""

import os
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


class CommonLock(Lock):
    _NODE_NAME = "-lock-"


def use_permits(client, path, most, folder, times):
    def work(name):
        semaphore = client.Semaphore(path, "kazoo", max_leases=most)
        for _ in range(times):
            with semaphore:
                file = os.path.join(folder, name)
                with open(file, "w", encoding="ascii"):
                    pass
                time.sleep(0.002)
                if len(os.listdir(folder)) > most:
                    print("too many", flush=True)
                os.remove(file)

    threads = [threading.Thread(target=work, args=(f"kazoo-{i}",)) for i in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def with_permits(client, what, path, most, rest):
    semaphore = client.Semaphore(path, "kazoo", max_leases=most)
    if what == "permits":
        use_permits(client, path, most, rest[0], int(rest[1]))
    elif what == "hold":
        semaphore.acquire()
        print("held", flush=True)
        threading.Event().wait()
    elif what == "try":
        try:
            print("held" if semaphore.acquire(blocking=False) else "refused", flush=True)
        except ValueError as error:
            print(error, flush=True)
        semaphore.release()


def main():
    what, hosts, path, names, *rest = sys.argv[1:]
    client = KazooClient(hosts=hosts, timeout=20 if what.startswith("hold") else 60)  # the end of one who holds is waited for
    client.start(timeout=120)
    what, _, mode = what.partition("-")
    if what == "permits" or mode == "permit":
        with_permits(client, what, path, int(names), rest)
        client.stop()
        client.close()
        return
    if mode:
        make = client.ReadLock if mode == "read" else client.WriteLock
        others = ["-__WRIT__", "-lock-"] if mode == "read" else ["-__WRIT__", "-__READ__", "-lock-"]
        lock = make(path, "kazoo", **({"extra_lock_patterns": others} if names == "curator" else {}))
    elif names == "common":
        lock = CommonLock(client, path, "kazoo", extra_lock_patterns=["-lock-"])
    else:
        lock = client.Lock(path, "kazoo", **({"extra_lock_patterns": ["-lock-"]} if names == "curator" else {}))
    if what == "count":
        counter, times = rest[0], int(rest[1])
        for _ in range(times):
            with lock:
                with open(counter, encoding="ascii") as file:
                    seen = int(file.read())
                time.sleep(0.001)
                with open(counter, "w", encoding="ascii") as file:
                    file.write(str(seen + 1))
    elif what == "hold":
        lock.acquire()
        print("held", flush=True)
        threading.Event().wait()
    elif what == "try":
        print("held" if lock.acquire(blocking=False) else "refused", flush=True)
        lock.release()
    elif what == "contenders":
        print("\n".join(lock.contenders()), flush=True)
    client.stop()
    client.close()


if __name__ == "__main__":
    main()
