#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Faults to locks on real servers: processes that are stopped and killed, lost messages, dead masters, clocks that are set. Installs what is
# missing, builds, does every row of the table, and says for each what it found.
#
#   tests/faults/run.sh [OPTION…] [ROW…]      e.g. tests/faults/run.sh paused_holder
#
#   --full        with the counts of a release: some hours. Stores a report with pictures in tests/faults/results
#   --controls    also with what each row is about switched off, which it has to find
#   --list        say which rows there are
#
#   HOLDFAST_BUILD_DIR   where to build; build/gcc in the source tree
#   HOLDFAST_JOBS        how many compilers run at once; the number of processors
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=../../cmake/packages.sh
. "$root/cmake/packages.sh"

build=$(realpath -m "${HOLDFAST_BUILD_DIR:-$root/build/gcc}")
results=$build/faults
full=() controls='' list='' rows=()
for word in "$@"; do
  case $word in
    --full)
      full=(--full)
      results=$here/results
      ;;
    --controls) controls=1 ;;
    --list) list=1 ;;
    -h | --help)
      sed -n '4,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) rows+=("$word") ;;
  esac
done

holdfast_need g++ cmake ninja hiredis redis-server zookeeper-client zookeeper-server catch2 cli11 nft
cd "$root"
cmake --preset gcc -B "$build" >/dev/null
cmake --build "$build" --target holdfast_faults -j "${HOLDFAST_JOBS:-$(nproc)}" >/dev/null
program=$build/tests/faults/holdfast_faults
if [ "$list" ]; then
  exec "$program" --list
fi
if [ ${#rows[@]} -eq 0 ]; then
  mapfile -t rows < <("$program" --list | cut -d' ' -f1)
fi

rm -rf "$results"
mkdir -p "$results"
begun=$SECONDS
failed=()
one()
{
  "$program" "$@" --results "$results" || failed+=("$*")
  echo
}
for row in "${rows[@]}"; do
  one "$row" "${full[@]}"
  if [ "$controls" ] && "$program" --list | grep -qx "$row control"; then
    one "$row" --control
  fi
done

{
  echo '# Faults to locks on real servers'
  echo
  echo "$(date -u +%F), $(nproc) processors, Linux $(uname -r), Redis $(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/')," \
    "holdfast $(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown); ${full[*]:-the short form}; $((SECONDS - begun)) s in all."
  echo
  echo '| row | must show | figures | breaches | took |'
  echo '|---|---|---|---|---|'
  for row in "${rows[@]}"; do
    for line in "$results/$row.md" "$results/${row}_control.md"; do
      if [ -e "$line" ]; then cat "$line"; fi
    done
  done
} >"$results/report.tmp"
for row in "${rows[@]}"; do rm -f "$results/$row.md" "$results/${row}_control.md"; done
mv "$results/report.tmp" "$results/report.md"

echo "$((SECONDS - begun)) s; the report is $(realpath --relative-to="$OLDPWD" "$results")/report.md"
if [ ${#failed[@]} -ne 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
