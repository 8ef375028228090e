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
#   HOLDFAST_JOBS        how many compilers, and how many targets, run at once; the number of processors
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
jobs=${HOLDFAST_JOBS:-$(nproc)}
cd "$root"
cmake --preset fuzz -B "$build" "-DCMAKE_CXX_COMPILER=$HOLDFAST_CLANG" >/dev/null
cmake --build "$build" -j "$jobs" --target "${targets[@]/#/holdfast_fuzz_}"

# Looks for inputs for one target, and says what came of it. Its status is 1 where the target was wrong.
look()
{
  local target=$1 right=true
  local program=$build/tests/fuzz/$target kept=$here/corpus/$target log=$build/$target.log
  local grown=$build/grown/$target found=$build/found/$target
  mkdir -p "$grown" "$found"
  # What is told of each new input is left out; the last lines are the figures. No input is so long, or takes so long, for a good reason;
  # and libFuzzer, which ends by itself, is ended where it does not.
  if ! timeout --foreground --kill-after=10 $((seconds + 300)) "$program" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
      -print_final_stats=1 -artifact_prefix="$found/" "$grown" "$kept" >"$log" 2>&1; then
    printf '\n== %s is wrong\n%s\n' "$target" "$(tail -n 40 "$log")"
    right=false
  else
    printf '\n== %s for %d s\n%s\n' "$target" "$seconds" "$(grep -E '^(Done|stat::(number|average|peak))' "$log")"
  fi
  if $keep; then
    "$program" -merge=1 -max_len=4096 "$kept" "$grown" >>"$log" 2>&1
    echo "corpus/$target: $(find "$kept" -type f | wc -l) inputs"
  fi
  $right
}

declare -A under_way=()
wrong=()
# Waits for one of those under way; what is not right is wrong, for whatever reason it ended.
reap()
{
  local id
  wait -n -p id || wrong+=("${under_way[$id]}")
  unset "under_way[$id]"
}

for target in "${targets[@]}"; do
  [ ${#under_way[@]} -lt "$jobs" ] || reap
  look "$target" &
  under_way[$!]=$target
done
while [ ${#under_way[@]} -gt 0 ]; do reap; done
[ ${#wrong[@]} -eq 0 ] || { echo "Wrong: ${wrong[*]}; the inputs are in $build/found" >&2; exit 1; }
