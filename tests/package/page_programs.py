#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles and runs the C++ of the pages, with real servers in place of those that they name: a redis-server for each
URL. What is a whole program is one; all other pieces that need no more than Redis are in one more program, which runs
them one by one, each as the body of a function, with functions that only note that they are called as the user's own
code. Ends with 1 if one fails, if a whole program that prints a fencing token prints none, or if another piece

- calls neither `ship()` nor `db.write()` with a fencing token, though it says so;
- has a result that is not what a comment beside it says: `bool const got = …;  // false`, `…(ec);  // outcome_unknown`;
- prints something else than a comment beside or below it says, addresses and times aside: `std::cout << …;  // 0`.

    page_programs.py FOLDER INCLUDE_FOLDER COMPILER OPTIONS PAGE...
                        e.g. /tmp/run include g++ '-pthread -lhiredis' README.md docs/redlock.md
"""

import contextlib
import pathlib
import re
import shlex
import subprocess
import sys
import time

from pages import CODE, program

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from redis_server import command, running_redis  # noqa: E402

SERVER = re.compile(r"redis://[\d.]+(?::\d+)?(?=\")")
TOKEN = re.compile(r"fencing token [1-9]\d*$", re.MULTILINE)
# A server that was started less than a minute ago has no vote in a Redlock, and a hundredth of that longer.
GUARD = 62

WHOLE = "int main()"
# They need another server, certificates, the simulation, or Asio.
ELSEWHERE = re.compile(r"zookeeper\.hpp|tls\.hpp|holdfast::sim|sim\.hpp|co_await")
SAID = [
    (re.compile(r"^(.*\bbool const (\w+) = .*;) +// (true|false)\b.*$", re.MULTILINE), r"\1 check(\2 == \3, __LINE__);"),
    (re.compile(r"^(.*\(ec\);) +// (\w+)\b.*$", re.MULTILINE), r"\1 check(ec == holdfast::errc::\2, __LINE__);"),
    (re.compile(r"\b500ms\b"), "5min"),  # on a machine that is slow
]
PRINTED = re.compile(r"std::cout.*; *(?:// (.*))?\n((?:// .*\n)*)")
VALUE = re.compile(r"redis://[\d.]+(:\d+)?|\d+\.\d ms|ahead|behind")

# What comes before and after a piece of a page, if it does nothing by itself.
AROUND = {
    ("asynchronous", 1): ("", "while (!written || orders.holder()) std::this_thread::sleep_for(1ms);"),
    ("checking-tokens", 0): ("", "check(on_request(7) && on_request(7) && !on_request(6) && !on_request(0), __LINE__);"),
    ("checking-tokens", 1): ("", "check(fences.may_read(7) && fences.may_read(6) && !fences.may_write(6), __LINE__);"
                                 "check(fences.may_write(8) && !fences.may_read(7) && !fences.may_write(0), __LINE__);"),
    ("redis", 0): ("holdfast::redlock::mutex used{masters, \"used\"}; std::scoped_lock held{used};"
                   "while (!masters.status()[2].last_error) std::this_thread::sleep_for(1ms);", ""),
}
# The leader of an election may be another one by then.
MAY_DO_NOTHING = "holdfast::election leader"

OWN_CODE = """
std::atomic<bool> good{true}, shipped{false}, written{false};
void check(bool is, int line)
{
    if (!is) std::cerr << "line " << line << ": it is not as the page says\\n";
    if (!is) good = false;
}
"""
OWN_FUNCTIONS = """
database db;
int row = 0;
std::stop_token stop;
holdfast::redlock::masters masters{{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.99"}};
void database::write(int, std::optional<std::uint64_t> token) { written = token.value_or(0) != 0; }
void log(char const* what) { std::cerr << what << '\\n'; }
void ship() { shipped = true; }
void halt() { std::abort(); }
void rollback() { std::abort(); }
template <class Token>
long total(Token token) { return static_cast<long>(token % 2); }
"""
ENDED = "redis://10.0.0.99"


def pieces_program(pages):
    """The source, and the pieces by the names of their functions."""
    named = {}
    texts = []
    for at, page in enumerate(pages):
        kept = []
        for number, piece in enumerate(CODE.findall(page.read_text(encoding="utf-8"))):
            if WHOLE in piece or ELSEWHERE.search(piece):
                continue
            named[f"page_{at}::piece_{len(kept)}"] = (f"{page.stem}, {number}", piece)
            before, after = AROUND.get((page.stem, number), ("", ""))
            code = f"{before}\n{piece}{after}\n"
            for pattern, result in SAID:
                code = pattern.sub(result, code)
            kept.append(f"```cpp\n{code}```\n")
        texts.append("\n".join(kept))
    calls = "\n".join(f'if (name == "{name}") {name}();' for name in named)
    does = """
int main(int, char** words)
{
    std::string const name{words[1]};
    %s
    if (shipped) std::cerr << "shipped\\n";
    if (written) std::cerr << "written\\n";
    return good ? 0 : 1;
}
""" % calls
    includes = "#include <atomic>\n#include <chrono>\n#include <iostream>\n#include <thread>\n"
    return includes + OWN_CODE + program(texts) + OWN_FUNCTIONS + does, named


def check_piece(made, function, name, piece):
    done = subprocess.run([made, function], check=False, timeout=600, text=True, capture_output=True)
    told = f"page_programs.py: {name}: {done.stdout}{done.stderr}"
    if done.returncode != 0:
        sys.exit(f"{told}: it ended with {done.returncode}")
    for call, word in (("ship();", "shipped"), ("db.write(", "written")):
        if call in piece and word not in done.stderr and MAY_DO_NOTHING not in piece:
            sys.exit(f"{told}: it has not {word}")
    said = [line for beside, below in PRINTED.findall(piece) for line in [beside, *below.replace("// ", "").splitlines()]]
    expected = "\n".join(filter(None, said))
    if expected and VALUE.sub("N", done.stdout.strip()) != VALUE.sub("N", expected):
        sys.exit(f"{told}: not as the page says: {expected}")
    print(f"{name}: {done.stdout.strip() or 'done'}")


def end_server(port):
    with contextlib.suppress(ConnectionError, ValueError):  # it does not answer
        command(port, "SHUTDOWN", "NOSAVE")


def main():
    folder, include, compiler, options, *pages = sys.argv[1:]
    pages = [pathlib.Path(page) for page in pages]
    made = pathlib.Path(folder)
    made.mkdir(parents=True, exist_ok=True)
    sources = {f"{page.stem}_{number}": "#include <mutex>\ninline void ship() {}\n" + piece
               for page in pages for number, piece in enumerate(CODE.findall(page.read_text(encoding="utf-8")))
               if WHOLE in piece}
    sources["pieces"], pieces = pieces_program(pages)
    with contextlib.ExitStack() as servers:
        ports = {url: servers.enter_context(running_redis())
                 for url in sorted({url for source in sources.values() for url in SERVER.findall(source)})}
        begun = time.monotonic()
        end_server(ports[ENDED])
        for name, source in sources.items():
            file = made / f"{name}.cpp"
            file.write_text(SERVER.sub(lambda url: f"redis://127.0.0.1:{ports[url[0]]}", source), encoding="utf-8")
            words = [compiler, "-std=c++20", "-O0", "-I", include, file, *shlex.split(options), "-o", made / name]
            subprocess.run(words, check=True)
        time.sleep(max(0, GUARD - (time.monotonic() - begun)))
        for name, source in sources.items():
            if name == "pieces":
                continue
            said = subprocess.run([made / name], check=True, timeout=300, text=True, stdout=subprocess.PIPE).stdout
            if "fencing token " in source and not TOKEN.search(said):
                sys.exit(f"page_programs.py: {name} printed no fencing token: {said}")
            print(f"{name}: {said.strip() or 'done'}")
        for function, (name, piece) in pieces.items():
            check_piece(made / "pieces", function, name, piece)
    if len(sources) < 4 or len(pieces) < 20:
        sys.exit("page_programs.py: the pages have no programs")


if __name__ == "__main__":
    main()
