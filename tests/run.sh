#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds and runs every test, on a machine with nothing installed too.
#
#   tests/run.sh [ARGUMENT OF CTEST…]      e.g. tests/run.sh -R conformance
#
#   HOLDFAST_PRESET      gcc, clang, asan-ubsan or tsan, of CMakePresets.json; gcc
#   HOLDFAST_BUILD_DIR   where to build; build/<preset> in the source tree
#   HOLDFAST_JOBS        how many compilers run at once; the number of processors. Of the tests, which mostly wait, ten
#                        times as many, but no more that compute than there are processors (tests/CMakeLists.txt)
#   HOLDFAST_UNITY       OFF: each file of a program is compiled on its own, as whoever changes a few of them wants it; ON
#   HOLDFAST_TOGETHER    how many test cases are run in one process; 1
#   HOLDFAST_ZOOKEEPER   OFF: nothing of ZooKeeper is built; ON
#   HOLDFAST_BOOST       OFF: nothing of Boost.Asio is built; ON
#   HOLDFAST_AREAS       the folders of tests/ that are built, e.g. "redis lock"; all
#   HOLDFAST_ONLY        build: runs no test
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../cmake/packages.sh
. "$root/cmake/packages.sh"

preset=${HOLDFAST_PRESET:-gcc}
build=$(realpath -m "${HOLDFAST_BUILD_DIR:-$root/build/$preset}")
jobs=${HOLDFAST_JOBS:-$(nproc)}

debian=()
if command -v apt-get >/dev/null; then debian=(make file dpkg-buildpackage lintian); fi
needs=(g++ cmake ninja hiredis openssl redis-server redis-py zookeeper-client asio zookeeper-server kazoo curator prometheus-client catch2 python3 cli11 nft)
options=("-DHOLDFAST_UNITY=${HOLDFAST_UNITY:-ON}" "-DHOLDFAST_TESTS_TOGETHER=${HOLDFAST_TOGETHER:-1}")
options+=("-DCMAKE_DISABLE_FIND_PACKAGE_zookeeper=$([ "${HOLDFAST_ZOOKEEPER:-ON}" = OFF ] && echo ON || echo OFF)")
options+=("-DHOLDFAST_TEST_AREAS=$(tr ' ' ';' <<<"${HOLDFAST_AREAS:-}")")
# Empty: it is not looked for. What is NOTFOUND is looked for again, also where it was OFF before.
options+=("-Dasio_BOOST_INCLUDE_DIR=$([ "${HOLDFAST_BOOST:-ON}" = OFF ] || echo NOTFOUND)")
if [ "$preset" = gcc ]; then
  holdfast_need "${needs[@]}" aspell curl doxygen pkg-config libpq postgresql "${debian[@]}"
else
  holdfast_need "${needs[@]}" clang++ clang-sanitizers
  # The presets name Clang 16, not every system has just that.
  options+=("-DCMAKE_CXX_COMPILER=$HOLDFAST_CLANG")
fi

# Another version of Boost may be here, and in the way.
[ "${HOLDFAST_BOOST:-ON}" = OFF ] || holdfast_want boost

# ThreadSanitizer cannot map its shadow where the kernel scatters addresses widely; the build runs the
# tests, too, to list them.
run=()
if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then
  run=(setarch -R)
fi

cd "$root"
cmake --preset "$preset" -B "$build" "${options[@]}" >/dev/null
"${run[@]}" cmake --build "$build" -j "$jobs"
[ "${HOLDFAST_ONLY:-}" != build ] || exit 0
printf '{"version": {"major": 1, "minor": 0}, "local": [{"processors": [{"id": "all", "slots": %d}]}]}\n' "$jobs" >"$build/processors.json"
"${run[@]}" ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$((10 * jobs))" \
  --resource-spec-file "$build/processors.json" "$@"
