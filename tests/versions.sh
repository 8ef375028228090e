#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Tries the library with every compiler and standard library of a list that is on this machine, and with what CMake had before 3.23.
#
#   tests/versions.sh [--tests] [WORD…]     only those of which a WORD is part, e.g. clang++-19
#
# With each: an outside project adds our folder and runs a program for each store; the examples are compiled without CMake, as the README says, and take a
# lock on a Redis server of their own. --tests: also builds and runs the tests of core, lock, memory, redis and redlock with it (not with libc++: these
# overhear every message by a name of GCC's library). A line is printed for each; ends with 1 where one failed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../cmake/packages.sh
. "$root/cmake/packages.sh"
holdfast_need g++ cmake ninja hiredis openssl redis-server zookeeper-client catch2

tests=
words=()
for argument in "$@"; do
  if [ "$argument" = --tests ]; then tests=yes; else words+=("$argument"); fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

asked_for() {
  local word
  [ ${#words[@]} -gt 0 ] || return 0
  for word in "${words[@]}"; do [[ $1 != *"$word"* ]] || return 0; done
  return 1
}

# say NAME COMMAND…: a line that tells whether it succeeded; if not, the end of what it said.
say() {
  local name=$1 begin=$SECONDS
  shift
  if "$@" >"$work/log" 2>&1; then
    printf 'works    %s (%d s)\n' "$name" $((SECONDS - begin))
  else
    printf 'FAILED   %s\n' "$name"
    tail -n 30 "$work/log" | sed 's/^/         /'
    failed=1
  fi
}

# outside SOURCE COMPILER FLAGS [OPTION…]: in a folder of its own, with what SOURCE says of a project that adds us.
outside() {
  local source=$1 compiler=$2 flags=$3
  rm -rf "$work/outside"
  cmake -G Ninja -S "$source/tests/package/add_subdirectory" -B "$work/outside" "-DHOLDFAST_SOURCE=$source" "-DCMAKE_CXX_COMPILER=$compiler" \
    "-DCMAKE_CXX_FLAGS=$flags" "${@:4}" || return
  cmake --build "$work/outside" || return
  for program in "$work"/outside/use_*; do
    if [ -x "$program" ] && [ -f "$program" ]; then "$program" || return; fi
  done
}

example() {
  # shellcheck disable=SC2086
  $2 $3 -std=c++20 -I "$root/include" "$root/examples/$1.cpp" -o "$work/$1" -lhiredis -pthread || return
  "$root/tests/examples/try.sh" 0 "$work/$1" @redis
}

areas() {
  local area build=$work/tests
  rm -rf "$build"
  cmake --preset gcc -S "$root" -B "$build" "-DCMAKE_CXX_COMPILER=$1" -DHOLDFAST_UNITY=ON -DHOLDFAST_BUILD_EXAMPLES=OFF || return
  for area in core lock memory redis redlock; do
    cmake --build "$build" --target "holdfast_test_$area" || return
    "$build/tests/holdfast_test_$area" || return
  done
}

for row in "g++-"{11..15}"|" "clang++-"{14..21}"|" "clang++-"{18,19,20,21}"|-stdlib=libc++ -fexperimental-library"; do
  compiler=${row%%|*} flags=${row#*|}
  name="$compiler${flags:+ $flags}"
  asked_for "$name" || continue
  command -v "$compiler" >/dev/null || continue
  # Not every machine that has a compiler has a library for it.
  # shellcheck disable=SC2086
  echo '#include <vector>' | "$compiler" $flags -x c++ -fsyntax-only - 2>/dev/null || continue
  echo "== $("$compiler" --version | head -n 1)${flags:+ $flags}"
  say "$name: a project that adds our folder" outside "$root" "$compiler" "$flags"
  for one in first_lock leased; do say "$name: $one, without CMake" example $one "$compiler" "$flags"; done
  if [ "$tests" ] && [ -z "$flags" ]; then say "$name: tests" areas "$compiler"; fi
done

# What is written for CMake before 3.23, which has no file sets: in a copy in which every CMake is taken for older.
before() {
  mkdir "$work/before"
  git -C "$root" ls-files -z include cmake tests/package CMakeLists.txt LICENSE | (cd "$root" && xargs -0 cp --parents -t "$work/before") || return
  sed -i 's/"3\.23"/"99"/' "$work/before"/cmake/*.cmake
  grep -q '"99"' "$work/before/cmake/components.cmake" && grep -q '"99"' "$work/before/cmake/install.cmake" || return
  cmake -G Ninja -S "$work/before" -B "$work/before/build" -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_EXAMPLES=OFF &&
    cmake --install "$work/before/build" --prefix "$work/before/installed" || return
  cmake -G Ninja -S "$work/before/tests/package/installed" -B "$work/before/user" "-DCMAKE_PREFIX_PATH=$work/before/installed" \
    -DCOMPONENTS=redlock,memory &&
    cmake --build "$work/before/user" --target use_redlock use_memory && "$work/before/user/use_redlock" && "$work/before/user/use_memory" || return
  outside "$work/before" g++ ""
}
if asked_for cmake; then
  echo "== $(cmake --version | head -n 1)"
  say "cmake: the rules for versions before 3.23, as $(cmake --version | head -n 1) reads them" before
fi
exit $failed
