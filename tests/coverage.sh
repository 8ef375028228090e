#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Says how many lines and branches of the headers the tests reach that need no ZooKeeper server, folder by folder.
#
#   tests/coverage.sh [--lines FOLDER]
#
#   --lines FOLDER   also name the lines that are not reached in include/holdfast/FOLDER
#
#   HOLDFAST_BUILD_DIR   where to build; build/coverage in the source tree
#   HOLDFAST_JOBS        how many compilers run at once; the number of processors
#
# Ends with 1 where core, lock or the machines have less than 95 % of their lines reached.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../cmake/packages.sh
. "$root/cmake/packages.sh"

holdfast_need g++ cmake ninja hiredis redis-server redis-py zookeeper-client asio catch2 python3 gcovr
holdfast_want boost
build=$(realpath -m "${HOLDFAST_BUILD_DIR:-$root/build/coverage}")
jobs=${HOLDFAST_JOBS:-$(nproc)}
areas=(core lock adapters redis redlock zookeeper conformance)

cd "$root"
cmake --preset coverage -B "$build" >/dev/null
cmake --build "$build" -j "$jobs" --target "${areas[@]/#/holdfast_test_}"
find "$build" -name '*.gcda' -delete

# What no test calls is in no test's program, and would not be missed: here is every function that is no template, called by nobody.
mkdir -p "$build/every_header"
(cd include && find holdfast -name '*.hpp' | LC_ALL=C sort | sed 's/.*/#include <&>/') >"$build/every_header/every_header.cpp"
(cd "$build/every_header" &&
  g++ -std=c++20 -O0 --coverage -fkeep-inline-functions -pthread -DTHREADED "-I$root/include" -c every_header.cpp)

# A test that fails does not say what would have been reached. Each program runs once, and not once for each of its tests, as every end of a
# program adds its figures to all the files.
for area in "${areas[@]}"; do
  case $area in
    # Of ZooKeeper's, the files that start no server.
    zookeeper)
      mapfile -t files < <(cd tests/zookeeper && grep -L zookeeper_server -- *_test.cpp)
      tags=$(printf ',[#%s]' "${files[@]%.cpp}")
      tests=(--filenames-as-tags "${tags:1}")
      ;;
    conformance) tests=('~*zookeeper_store*') ;;
    *) tests=() ;;
  esac
  printf '\n== %s (after %d s)\n' "$area" $SECONDS
  "$build/tests/holdfast_test_$area" "${tests[@]}"
done

gcovr --root "$root" --filter "$root/include/holdfast/" --json "$build/coverage.json" -j "$jobs" "$build"
python3 -B tests/coverage.py "$build/coverage.json" "$@"
