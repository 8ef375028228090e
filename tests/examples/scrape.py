#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a program that says where its metrics are, scrapes them, and has Prometheus's own client read them. Ends with 1
where they are not what they should be. A client that says nothing, and one that does not stop, are there meanwhile.

    scrape.py PROGRAM [ARGUMENT...]
    scrape.py --names PROGRAM [ARGUMENT...]       the program gets this option, too: the metrics have names of locks
    scrape.py --outage PROGRAM [ARGUMENT...]      no server can be reached: the metrics have to say so
"""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from prometheus_client.parser import text_string_to_metric_families


def scrape(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        if not answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"):
            sys.exit(f"scrape.py: of type {answer.headers['Content-Type']}")
        return {family.name: family for family in text_string_to_metric_families(answer.read().decode())}


def value(families, name, **labels):
    for family in families.values():
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return sys.exit(f"scrape.py: no {name} {labels}")


def check(families, with_names):
    for kind, names in {"gauge": ("locks_held", "waiting"), "counter": ("acquired", "lost"),
                        "histogram": ("wait_seconds", "hold_seconds")}.items():
        for name in names:
            if families[f"holdfast_{name}"].type != kind:
                sys.exit(f"scrape.py: holdfast_{name} is no {kind}")
    buckets = [s.value for s in families["holdfast_hold_seconds"].samples if s.name.endswith("_bucket")]
    if buckets != sorted(buckets) or buckets[-1] != value(families, "holdfast_hold_seconds_count"):
        sys.exit(f"scrape.py: {buckets} are no buckets")
    value(families, "holdfast_lost_total", cause="deadline")
    labels = {label for family in families.values() for sample in family.samples for label in sample.labels}
    if labels != ({"le", "cause", "lock"} if with_names else {"le", "cause"}):
        sys.exit(f"scrape.py: the labels are {sorted(labels)}")
    if with_names and value(families, "holdfast_lock_acquired_total", lock="orders/42") < 1:
        sys.exit("scrape.py: no lock was acquired by that name")


def connect(url):
    parts = urllib.parse.urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def send_without_end(url):
    with connect(url) as client:
        try:
            for _ in range(1000):
                client.sendall(b"x" * 65536)
        except ConnectionError:
            return
        sys.exit("scrape.py: a request without an end is read on and on")


def scrape_until(url, name, wanted):
    while value(families := scrape(url), name) < wanted:
        time.sleep(0.05)
    return families


def main():
    outage = sys.argv[1] == "--outage"
    names = sys.argv[1] == "--names"
    arguments = sys.argv[2 if outage or names else 1:]
    if names:
        arguments.insert(1, "--names")
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as program:
        try:
            url = program.stdout.readline().strip()
            with connect(url):
                send_without_end(url)
                if outage:
                    scrape_until(url, "holdfast_failed_total", 2)
                else:
                    scrape_all(url, names)
                program.stdin.close()
                if program.wait(60) != 0:
                    sys.exit(f"scrape.py: it ended with {program.returncode}")
        except BaseException:
            program.kill()
            raise


def scrape_all(url, names):
    before = scrape_until(url, "holdfast_acquired_total", 2)  # the first is told to the observer
    check(before, names)
    wanted = value(before, "holdfast_acquired_total") + 10
    after = scrape_until(url, "holdfast_acquired_total", wanted)
    check(after, names)
    if value(after, "holdfast_hold_seconds_sum") < value(after, "holdfast_hold_seconds_count") * 0.002:
        sys.exit("scrape.py: the sections were longer")
    try:
        urllib.request.urlopen(url + "/nothing", timeout=60)
        sys.exit("scrape.py: there is something else")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            sys.exit(f"scrape.py: {error}")


main()
