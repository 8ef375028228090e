#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Measures holdfast against what limits it, on a machine with nothing installed too. Prints a table, and stores it with a
# picture: a full run in tests/benchmark/results, any other in the build folder.
#
#   tests/benchmark/run.sh [OPTION…] [WORKLOAD…]      e.g. tests/benchmark/run.sh --quick P1 five_masters
#
#   --quick                    only see whether it works; too short for figures
#   --awake                    keep the processors from sleeping between the calls; a full run is stored in tests/benchmark/results/awake
#   --check                    exit status 1 where a target is missed
#   --redis-plus-plus FOLDER   compare with redis-plus-plus, too: where it is installed, or its sources
#
#   HOLDFAST_BUILD_DIR   where to build; build/benchmark in the source tree
#   HOLDFAST_JOBS        how many compilers run at once; the number of processors
#
# The figures are worth something only where nothing else runs on the machine.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=../../cmake/packages.sh
. "$root/cmake/packages.sh"

build=$(realpath -m "${HOLDFAST_BUILD_DIR:-$root/build/benchmark}")
results=$here/results
redis_plus_plus=
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --redis-plus-plus)
      redis_plus_plus=$(realpath -e "${2:?--redis-plus-plus needs a folder}")
      shift
      ;;
    --check) arguments+=("$1") ;;
    --awake)
      arguments+=("$1")
      [ "$results" != "$here/results" ] || results=$here/results/awake
      ;;
    -h | --help)
      sed -n '4,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      arguments+=("$1")
      results=$build/results
      ;;
  esac
  shift
done

holdfast_need g++ cmake ninja hiredis asio redis-server zookeeper-client zookeeper-server cli11 nlohmann_json redis-py
holdfast_want matplotlib curator
cd "$root"

# What is measured. Results of an earlier run do not change it.
commit=unknown
if up=$(git rev-parse --show-cdup 2>/dev/null) && [ -z "$up" ] && described=$(git describe --always 2>/dev/null); then
  commit=$described
  [ -z "$(git status --porcelain -- . ':!tests/benchmark/results')" ] || commit+=' + changes'
fi
arguments+=("--commit=$commit")

cmake --preset benchmark -B "$build" >/dev/null
cmake --build "$build" --target holdfast_benchmark -j "${HOLDFAST_JOBS:-$(nproc)}"

compile=() link=()
if [ -e "$redis_plus_plus/src/sw/redis++/redis++.h" ]; then
  # One of its headers is written by its own configuration.
  cmake -S "$redis_plus_plus" -B "$build/redis-plus-plus" -DCMAKE_BUILD_TYPE=Release -DREDIS_PLUS_PLUS_BUILD_TEST=OFF \
    -DREDIS_PLUS_PLUS_CXX_STANDARD=20 >/dev/null
  cmake --build "$build/redis-plus-plus" --target redis++_static -j "${HOLDFAST_JOBS:-$(nproc)}" >/dev/null
  sources=$redis_plus_plus/src
  compile=("-I$sources" "-I$build/redis-plus-plus/src" "-I$sources/sw/redis++/no_tls" "-I$sources/sw/redis++/cxx17")
  link=("$build/redis-plus-plus/libredis++.a")
elif [ "$redis_plus_plus" ]; then
  compile=("-I$redis_plus_plus/include")
  link=("-L$redis_plus_plus/lib" "-Wl,-rpath,$redis_plus_plus/lib" -lredis++)
fi
[ ${#compile[@]} -eq 0 ] || arguments+=("--redis-plus-plus=$(printf "'%s' " "${compile[@]}")")

# Rivals, where their packages can be had. What npm installs is found beside the script.
mkdir -p "$build/rivals"
cp "$here"/rivals/*.py "$here"/rivals/*.cjs "$build/rivals"
if [ ${#compile[@]} -gt 0 ] && g++ -O2 -std=c++20 "${compile[@]}" "$here/rivals/redis_plus_plus.cpp" -o "$build/rivals/redis_plus_plus" \
  "${link[@]}" -lhiredis -pthread; then
  arguments+=("--redis-plus-plus-rival=$build/rivals/redis_plus_plus")
fi
if holdfast_has redis-py && command -v npm >/dev/null &&
  { [ -d "$build/rivals/node_modules/redlock" ] || npm install --silent --prefix "$build/rivals" redlock@5.0.0-beta.2 ioredis@5; }; then
  arguments+=("--rivals=$build/rivals")
fi
! holdfast_has curator || arguments+=("--curator=$here/rivals/CuratorCrowd.java")

status=0
"$build/tests/benchmark/holdfast_benchmark" --results "$results" "${arguments[@]}" || status=$?
[ $status -le 1 ] || exit $status
if python=$(holdfast_plotting_python); then
  "$python" "$here/plot.py" "$results/benchmark.json" "$results/benchmark.svg"
  if grep -q '"P7"' "$results/benchmark.json"; then
    "$python" "$here/plot_crowd.py" "$results/benchmark.json" "$results/crowd.svg"
    "$python" "$here/plot_family.py" "$results/benchmark.json" "$results/family.svg"
  fi
fi
printf '\nStored in %s\n' "$(realpath --relative-to="$OLDPWD" "$results")"
exit $status
