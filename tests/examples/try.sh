#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   try.sh STATUS COMMAND [ARGUMENT…]
#
# Passes when the command ends with this status and leaves no file but its picture. In an argument each @redis stands for the URL
# of a Redis server, a new one each, and @zookeeper for the address of a ZooKeeper server.
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

start_zookeeper()
{
  local data=$folder/zookeeper${#servers[@]} port
  port=$(shuf -i 10000-32767 -n 1)
  mkdir "$data"
  printf 'tickTime=100\nmaxSessionTimeout=60000\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\n' "$data" "$port" >"$data/zoo.cfg"
  setpriv --pdeathsig KILL java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Dzookeeper.admin.enableServer=false \
    -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar org.apache.zookeeper.server.quorum.QuorumPeerMain "$data/zoo.cfg" \
    >"$data/log" 2>&1 &
  servers+=($!)
  address=127.0.0.1:$port
  until (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
    kill -0 "${servers[-1]}" || { cat "$data/log"; exit 1; }
    sleep 0.05
  done
}

command=()
for word in "$@"; do
  while [[ $word == *@redis* ]]; do
    start_redis
    word=${word/@redis/$url}
  done
  if [[ $word == *@zookeeper* ]]; then
    start_zookeeper
    word=${word/@zookeeper/$address}
  fi
  command+=("$word")
done

cd "$folder/here"
status=0
timeout 300 "${command[@]}" || status=$?
if [ "$status" -ne "$expected" ]; then
  echo "ended with $status in place of $expected"
  exit 1
fi
left=$(find . -type f ! -name holdfast-quickstart.svg)
if [ "$left" ]; then
  echo "left behind: $left"
  exit 1
fi
