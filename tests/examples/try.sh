#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   try.sh STATUS COMMAND [ARGUMENT…]
#
# Passes when the command ends with this status and leaves no file but its picture. In an argument each @redis stands for the URL
# of a Redis server, a new one each.
set -euo pipefail

expected=$1
shift

folder=$(mktemp -d /tmp/holdfast-XXXXXX)
servers=()
# shellcheck disable=SC2317
clean()
{
  { [ ${#servers[@]} -eq 0 ] || kill -KILL "${servers[@]}" && wait; } 2>/dev/null || true
  rm -rf "$folder"
}
trap clean EXIT
mkdir "$folder/here"

start_redis()
{
  local socket=$folder/${#servers[@]}.sock
  setpriv --pdeathsig KILL redis-server --port 0 --unixsocket "$socket" --save "" --dir "$folder" >/dev/null &
  servers+=($!)
  until [ -S "$socket" ]; do sleep 0.01; done
  url=unix://$socket
}

command=()
for word in "$@"; do
  while [[ $word == *@redis* ]]; do
    start_redis
    word=${word/@redis/$url}
  done
  command+=("$word")
done

cd "$folder/here"
status=0
timeout 60 "${command[@]}" || status=$?
if [ "$status" -ne "$expected" ]; then
  echo "ended with $status in place of $expected"
  exit 1
fi
left=$(find . -type f ! -name holdfast-quickstart.svg)
if [ "$left" ]; then
  echo "left behind: $left"
  exit 1
fi
