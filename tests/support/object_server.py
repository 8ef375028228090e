# SPDX-License-Identifier: MIT
"""A real HTTP server for tests in Python, which keeps objects: GET reads one, with its ETag, and PUT writes one, if what
If-Match or If-None-Match says is true of it."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Objects(BaseHTTPRequestHandler):
    """Compares and writes in one step. The server has the settings of `running_objects`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        with self.server.mutex:
            body, version = self.server.objects.get(self.path, (None, 0))
        before, self.server.before_answer = self.server.before_answer, None
        if before:
            before()
        if body is None:
            return self.answer(404)
        tag = self.server.tag.replace("N", str(version))
        return self.answer(200, body, [("ETag", tag)] if tag else [])

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.mutex:
            done = self.change(body)
        self.answer(done)

    def change(self, body):
        old, version = self.server.objects.get(self.path, (None, 0))
        matches = self.headers["If-Match"] in (None, self.server.tag.replace("N", str(version)))
        expected = old is None if self.headers["If-None-Match"] == "*" else matches
        if self.server.compares and not expected:
            return 412
        self.server.objects[self.path] = (body, version + 1)
        return 201 if old is None else 204

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in [*headers, ("Content-Length", str(len(body)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:self.server.longest])
        self.close_connection = len(body) > self.server.longest

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def running_objects(tag='"N"', compares=True, longest=1_000_000):
    """Gives the server, with `url`, on 127.0.0.1. `tag`: its ETags, with N for the version; empty: it sends none.
    `compares`: whether it heeds the conditions of a request. `longest`: after so many bytes of an object its answer breaks
    off. `before_answer`: what it calls when the next GET has read the object, before it answers."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Objects) as server:
        server.url = f"http://127.0.0.1:{server.server_port}"
        server.tag, server.compares, server.longest, server.before_answer = tag, compares, longest, None
        server.mutex, server.objects = threading.Lock(), {}
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        try:
            yield server
        finally:
            server.shutdown()
            serving.join()
