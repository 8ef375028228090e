#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs tests under valgrind's memcheck: all of core, lock, the adapters and quorum, the machines of ZooKeeper, and, on real servers,
# the part of the conformance suite that takes, renews and releases a lock.
#
#   tests/valgrind.sh [AREA…]      core lock adapters quorum redis zookeeper conformance
#
#   HOLDFAST_PRESET      of CMakePresets.json, without a sanitizer; gcc
#   HOLDFAST_BUILD_DIR   where to build; build/<preset> in the source tree
#
# Ends with 1 where memory is used that is not there, or was never written, or is lost for certain.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../cmake/packages.sh
. "$root/cmake/packages.sh"

preset=${HOLDFAST_PRESET:-gcc}
build=$(realpath -m "${HOLDFAST_BUILD_DIR:-$root/build/$preset}")
areas=("$@")
[ ${#areas[@]} -gt 0 ] || areas=(core lock adapters quorum redis zookeeper conformance)

holdfast_need g++ cmake ninja hiredis redis-server zookeeper-client asio catch2 python3 valgrind
holdfast_want boost
cd "$root"
cmake --preset "$preset" -B "$build" >/dev/null
cmake --build "$build" -j "${HOLDFAST_JOBS:-$(nproc)}" --target "${areas[@]/#/holdfast_test_}"

# The files of an area that are run, where not all are; and the stores of the conformance suite.
declare -A only=(
  [redis]='endpoint_test.cpp error_test.cpp keys_test.cpp protocol_test.cpp'
  [zookeeper]='*_machine_test.cpp path_test.cpp session_lease_test.cpp'
  [conformance]='release_test.cpp handoff_test.cpp guards_test.cpp'
)
declare -A stores=([conformance]='*memory_store* *redis_store*')

status=0
for area in "${areas[@]}"; do
  tests=()
  if [ "${only[$area]:-}" ]; then
    # Each file is a tag of Catch2's.
    # shellcheck disable=SC2086
    mapfile -t files < <(cd "tests/$area" && ls -- ${only[$area]})
    set -f
    for store in ${stores[$area]:-''}; do
      for file in "${files[@]%.cpp}"; do tests+=("$store[#$file],"); done
    done
    set +f
    tests=(--filenames-as-tags "$(printf '%s' "${tests[@]}")")
  fi
  printf '\n== %s (after %d s)\n' "$area" $SECONDS
  # Threads take turns: one that only looks at a clock must not keep the others from running.
  valgrind --quiet --fair-sched=yes --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --error-exitcode=99 \
    --child-silent-after-fork=yes "$build/tests/holdfast_test_$area" "${tests[@]}" || status=1
done
exit $status
