#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Eight processes guard one critical section with a lock on five Redis masters, while masters are killed and a process is stopped past
# its lease; installs what is missing, builds, runs, and draws who held the lock when.
#
#   examples/quickstart.sh [--seconds N] [--masters URL,URL,…] [--zookeeper [HOST:PORT,…]] [--svg FILE]
#
#   --zookeeper          a lock on ZooKeeper instead: on three servers that it starts, one of which is killed, or on your own
#
#   QUICKSTART_MASTERS   the same as --masters, where nobody else on the machine can read it: for URLs with passwords
#   HOLDFAST_BUILD_DIR   where to build; build/quickstart in the source tree
#   HOLDFAST_JOBS        how many compilers run at once; the number of processors
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../cmake/packages.sh
. "$root/cmake/packages.sh"
holdfast_need g++ cmake ninja hiredis redis-server cli11
components=redlock
case " $* " in
  *" --zookeeper "* | *" --zookeeper="*)
    holdfast_need zookeeper-client zookeeper-server
    components="redlock;zookeeper"
    ;;
esac

build=$(realpath -m "${HOLDFAST_BUILD_DIR:-$root/build/quickstart}")
[ -x "$build/examples/quickstart" ] || echo "Building, once …"

# Words only when it fails.
quietly()
{
  local said
  said=$("$@" 2>&1) || {
    echo "$said" >&2
    exit 2
  }
}
quietly cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=g++ \
  "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" -DHOLDFAST_UNITY=ON \
  -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_BENCHMARKS=OFF -DHOLDFAST_BUILD_EXAMPLES=ON "-DHOLDFAST_COMPONENTS=$components"
quietly cmake --build "$build" --target quickstart -j "${HOLDFAST_JOBS:-$(nproc)}"

exec "$build/examples/quickstart" "$@"
