#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs the shipped locks through many schedules of faults in virtual time, on a machine with nothing installed too. Exit status 1: a
# guarantee was broken; what is printed then replays just what is needed for that.
#
#   tests/simulate.sh --seeds N [--first S] [--machine NAME|all] [--jobs N]
#   tests/simulate.sh --machine redlock --seed S [--keep DECISIONS]      one schedule, with all that happens in it
#   tests/simulate.sh --help
#
#   HOLDFAST_BUILD_DIR   where to build; build/simulate in the source tree
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../cmake/packages.sh
. "$root/cmake/packages.sh"
build=$(realpath -m "${HOLDFAST_BUILD_DIR:-$root/build/simulate}")

holdfast_need g++ cmake ninja python3 cli11 catch2
cd "$root"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake --preset gcc -B "$build" -DCMAKE_BUILD_TYPE=Release "-DHOLDFAST_COMPONENTS=core;memory;sim" &&
  cmake --build "$build" -j "$(nproc)" --target holdfast_simulate; } >"$log" 2>&1; then
  cat "$log" >&2
  exit 2
fi

jobs=(--jobs "$(nproc)")
[[ " $* " == *" --jobs"* ]] && jobs=()
"$build/tests/sim/holdfast_simulate" "${jobs[@]}" "$@"
