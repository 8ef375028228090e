#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Has clang-tidy and cppcheck read every header and the stores made of them.
#
#   tests/lint.sh [FILE.cpp…]      also reads these, e.g. tests/lint.sh tests/redis/*_test.cpp
#
# What they look for is in .clang-tidy and .cppcheck-suppressions, with the reasons for what they do not. Ends with 1 where they find anything.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../cmake/packages.sh
. "$root/cmake/packages.sh"
holdfast_need g++ hiredis zookeeper-client asio catch2 clang-tidy cppcheck
holdfast_want boost
cd "$root"

# One file with every header costs a fraction of one for each: most of the time goes into the standard's. The definition files among them
# make the templates into the stores there are.
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
# One without "#pragma once" is a part of others.
(cd include && grep -rl --include='*.hpp' '^#pragma once' holdfast | LC_ALL=C sort | sed 's/.*/#include <&>/') >"$made/every_header.cpp"
files=("$made/every_header.cpp" "$@")

# The headers' names are to be as .clang-tidy knows them, from the root of the file system.
options=(-std=c++20 "-I$root/include" "-I$root/tests" -pthread -DTHREADED -DHOLDFAST_TEST_ZOOKEEPER)
status=0
for file in "${files[@]}"; do
  printf '== clang-tidy %s (after %d s)\n' "$(basename "$file")" $SECONDS
  # Warnings are the compilers' job, in the builds. What is said on standard error is how many were left out.
  "$(holdfast_clang_tidy)" --quiet --config-file=.clang-tidy "$file" -- "${options[@]}" -Wno-everything 2>"$made/said" || {
    cat "$made/said"
    status=1
  }
done

printf '== cppcheck (after %d s)\n' $SECONDS
cppcheck --quiet --language=c++ --std=c++20 --enable=warning,style,performance,portability --inline-suppr \
  --suppressions-list=.cppcheck-suppressions --error-exitcode=1 --template='{file}:{line}: {severity}: {message} [{id}]' \
  -DTHREADED -D__cpp_lib_jthread=201911L -D__cpp_exceptions=199711L -I include "${files[@]}" || status=1
exit $status
