#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Lets libFuzzer look for inputs that the fuzz targets are wrong about, for a while each.
#
#   tests/fuzz/run.sh [--seconds N] [--keep] [TARGET…]      e.g. tests/fuzz/run.sh --seconds 600 redis_url
#
#   --seconds N   how long for each target; 60
#   --keep        afterwards, add to corpus/ the inputs that reach what those in it do not
#   TARGET        all without
#
#   HOLDFAST_BUILD_DIR   where to build; build/fuzz in the source tree
#
# Ends with 1 where a target was wrong. The input is then in <build>/found/<target>/: put it into corpus/<target>/ with a name that says
# what it shows, and mend the code; from then on it is one of the tests.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(realpath "$here/../..")
# shellcheck source=../../cmake/packages.sh
. "$root/cmake/packages.sh"

seconds=60 keep=false targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?--seconds needs a number}; shift ;;
    --keep) keep=true ;;
    -*) echo "unknown option $1" >&2; exit 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
if [ ${#targets[@]} -eq 0 ]; then
  for folder in "$here"/corpus/*/; do targets+=("$(basename "$folder")"); done
fi

holdfast_need g++ cmake ninja hiredis zookeeper-client clang++ clang-sanitizers
build=$(realpath -m "${HOLDFAST_BUILD_DIR:-$root/build/fuzz}")
cd "$root"
cmake --preset fuzz -B "$build" "-DCMAKE_CXX_COMPILER=$HOLDFAST_CLANG" >/dev/null
cmake --build "$build" -j "${HOLDFAST_JOBS:-$(nproc)}" --target "${targets[@]/#/holdfast_fuzz_}"

wrong=()
for target in "${targets[@]}"; do
  program=$build/tests/fuzz/$target kept=$here/corpus/$target
  grown=$build/grown/$target found=$build/found/$target
  mkdir -p "$grown" "$found"
  printf '\n== %s for %d s\n' "$target" "$seconds"
  # What is told of each new input is left out; the last lines are the figures. No input is so long, or takes so long, for a good reason.
  if "$program" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$found/" \
      "$grown" "$kept" >"$build/$target.log" 2>&1; then
    grep -E '^(Done|stat::(number|average|peak))' "$build/$target.log"
  else
    tail -n 40 "$build/$target.log"
    wrong+=("$target")
  fi
  if $keep; then
    "$program" -merge=1 -max_len=4096 "$kept" "$grown" >>"$build/$target.log" 2>&1
    echo "corpus/$target: $(find "$kept" -type f | wc -l) inputs"
  fi
done
[ ${#wrong[@]} -eq 0 ] || { echo "Wrong: ${wrong[*]}; the inputs are in $build/found" >&2; exit 1; }
