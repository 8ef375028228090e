#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   fair_queue.sh PROGRAM WHO_HOLDS URL
#
# Passes when four processes that came one after the other, while another one had its turn, have theirs in this order,
# three times. A process that is called and comes too late, as the machine lets it wait, loses its place: the order may
# be another up to six times. WHO_HOLDS is the program that says how many wait.
set -euo pipefail

program=$1
who_holds=$2
url=$3

mkfifo enter
right=0
for _ in 1 2 3 4 5 6 7 8 9; do
  : >turns
  "$program" "$url" desk <enter >first &
  came=($!)
  exec 3>enter  # its turn ends when this is closed
  until grep -q "process $! has its turn" first; do kill -0 $!; sleep 0.02; done
  for waiting in 1 2 3 4; do
    "$program" "$url" desk </dev/null >>turns 3>&- &
    came+=($!)
    until "$who_holds" "$url" desk | grep -q "; about $waiting clients wait"; do kill -0 $!; sleep 0.02; done
  done
  if grep 'has its turn' turns; then exit 1; fi
  exec 3>&-
  wait "${came[@]}"
  turns=$(sed -n 's/process \(.*\) has its turn.*/\1/p' turns | xargs)
  echo "came: ${came[*]:1}; had their turns: $turns"
  [ "$turns" != "${came[*]:1}" ] || [ $((right += 1)) -lt 3 ] || break
done
rm enter first turns
[ $right -eq 3 ]
