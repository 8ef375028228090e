#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   try.sh STATUS COMMAND [ARGUMENT…]
#
# Passes when the command ends with this status, leaves no process, and no file but its picture, and has not ended a server that it was
# given. In an argument each @redis stands for the URL of a Redis server, a new one each, and @zookeeper for the address of a ZooKeeper server.
set -euo pipefail

expected=$1
shift

# shellcheck source=servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/servers.sh"
mkdir "$folder/here"

start_redis()
{
  local socket=$folder/${#servers[@]}.sock
  setpriv --pdeathsig KILL redis-server --port 0 --unixsocket "$socket" --save "" --dir "$folder" >/dev/null &
  servers+=($!)
  until redis-cli -s "$socket" ping >/dev/null 2>&1; do sleep 0.01; done
  url=unix://$socket
}

start_zookeeper()
{
  local data=$folder/zookeeper${#servers[@]} port
  mkdir "$data"
  again_where_a_port_is_taken "$data/log" try_zookeeper
  address=127.0.0.1:$port
}

# Passes when it serves clients: it takes connections before.
try_zookeeper()
{
  port=$(shuf -i 10000-32767 -n 1)
  printf 'tickTime=100\nmaxSessionTimeout=60000\n4lw.commands.whitelist=srvr\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\n' \
    "$data" "$port" >"$data/zoo.cfg"
  setpriv --pdeathsig KILL java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Dzookeeper.admin.enableServer=false \
    -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar org.apache.zookeeper.server.quorum.QuorumPeerMain "$data/zoo.cfg" \
    >"$data/log" 2>&1 &
  local server=$!
  until says_mode "$port"; do
    kill -0 "$server" 2>/dev/null || return 1
    sleep 0.05
  done
  # One of somebody else's may have that port, and answer.
  kill -0 "$server" 2>/dev/null || return 1
  servers+=("$server")
}

says_mode()
{
  (exec 3<>"/dev/tcp/127.0.0.1/$1" && printf srvr >&3 && timeout 5 cat <&3 | grep '^Mode:') >/dev/null 2>&1
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
# All that it starts is in its session, which has the number of its first process.
setsid timeout 300 "${command[@]}" &
session=$!
status=0
wait "$session" || status=$?
if [ "$status" -ne "$expected" ]; then
  echo "ended with $status in place of $expected"
  exit 1
fi
# A child that was killed may not have gone yet.
tries=0
while left=$({ cat /proc/[0-9]*/stat 2>/dev/null; :; } | grep -E "\) [^Z] [0-9]+ [0-9]+ $session ") && [ $((tries += 1)) -le 200 ]; do sleep 0.05; done
if [ "$left" ]; then
  echo "processes left behind: $left"
  exit 1
fi
for one in "${servers[@]}"; do
  kill -0 "$one" || { echo "a server that it was given has ended"; exit 1; }
done
left=$(find . -type f ! -name holdfast-quickstart.svg)
if [ "$left" ]; then
  echo "left behind: $left"
  exit 1
fi
