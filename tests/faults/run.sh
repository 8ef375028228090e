#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Faults to locks on real servers: processes that are stopped and killed, lost messages, dead masters, clocks that are set. Installs what is
# missing, builds, does every row of the table, and says for each what it found.
#
#   tests/faults/run.sh [OPTION…] [ROW…]      e.g. tests/faults/run.sh paused_holder
#
#   --full        with the counts of a release: some hours. Without ROW, the report is stored in tests/faults/results,
#                 with pictures; any other in the build folder
#   --controls    also with what each row is about switched off, which it has to find: one more row in the report
#   --jobs N      N rows at once, as most of them mostly wait; 1. Rows whose times are judged come first, and alone
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
full=() controls='' list='' rows=() jobs=1
while [ $# -ne 0 ]; do
  word=$1
  shift
  case $word in
    --full) full=(--full) ;;
    --controls) controls=1 ;;
    --list) list=1 ;;
    --jobs)
      jobs=${1:-}
      if ! [[ $jobs =~ ^[1-9][0-9]*$ ]]; then
        echo 'run.sh: --jobs takes a number' >&2
        exit 2
      fi
      shift
      ;;
    -h | --help)
      sed -n '4,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
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
listed=$("$program" --list)
if [ ${#rows[@]} -eq 0 ]; then
  if [ ${#full[@]} -ne 0 ]; then results=$here/results; fi
  mapfile -t rows < <(cut -d' ' -f1 <<<"$listed")
fi

rm -rf "$results"
mkdir -p "$results"
begun=$SECONDS
failed=()
# What each judges in the short form has room for a busy machine. These also report times of tens of milliseconds, and with --full judge them, which
# only means something where nothing else runs. Soaks are judged, too, but are too long for that: what they aim at has room for some neighbours.
timed=' paused_holder paused_holder_redlock paused_holder_zookeeper unknown_outcome unknown_outcome_redlock unknown_outcome_zookeeper '
timed+='killed_holder killed_holder_redlock killed_holder_zookeeper killed_leader killed_leader_redlock killed_leader_zookeeper readers readers_redlock readers_zookeeper masters_down lost_memory floods bursts bursts_redlock deadlines deadlines_redlock deadlines_zookeeper '
said=$(mktemp -d)
declare -a of=()
declare -A running=()
mkfifo "$said/ended"
exec 3<>"$said/ended"
stop()
{
  local pid
  for pid in "${running[@]}"; do
    if ! kill "$pid" 2>/dev/null; then continue; fi  # it has ended
  done
  rm -rf "$said"
}
trap stop EXIT
trap 'exit 130' INT TERM

# Does a row, and says with which status it ended, however it did: its number and the status go to those who wait.
attend()
{
  local number=$1 status=0 pid
  shift
  "$program" "$@" --results "$results" 3>&- &
  pid=$!
  trap 'kill $pid' TERM
  wait $pid || status=$?
  echo "$number $status" >&3
}
# Waits until a row has ended, and says what it said.
end_one()
{
  local number status name
  read -r number status <&3
  unset "running[$number]"
  cat "$said/$number"
  echo
  if [ "$status" -eq 0 ]; then return; fi
  failed+=("${of[number]}")
  name=${of[number]%% *}
  if [[ ${of[number]} == *--control* ]]; then name+=_control; fi
  if [ ! -e "$results/$name.md" ]; then echo "| $name | | failed, with status $status | | |" >"$results/$name.md"; fi
}
end_all()
{
  while [ ${#running[@]} -ne 0 ]; do end_one; done
}
start()
{
  while [ ${#running[@]} -ge "$at_once" ]; do end_one; done
  local number=${#of[@]}
  of+=("$*")
  attend "$number" "$@" >"$said/$number" 2>&1 &
  running[$number]=$!
}
each()
{
  local row=$1
  start "$row" "${full[@]}"
  if [ "$controls" ] && grep -qx "$row control" <<<"$listed"; then start "$row" --control; fi
}
at_once=1
for row in "${rows[@]}"; do
  if [[ $timed == *" $row "* ]]; then each "$row"; fi
done
end_all
at_once=$jobs
for row in "${rows[@]}"; do
  if [[ $timed != *" $row "* ]]; then each "$row"; fi
done
end_all

{
  echo '# Faults to locks on real servers'
  echo
  echo "$(date -u +%F), $(nproc) processors, Linux $(uname -r), Redis $(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/')," \
    "holdfast $(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown);" \
    "${full[*]:-the short form}${controls:+, with the controls}, $jobs at once; $((SECONDS - begun)) s in all."
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
