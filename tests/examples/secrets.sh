#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   secrets.sh QUICKSTART
#
# Passes when nobody else on the machine can learn the password of given masters: it is in no list of arguments while the example runs, and then
# in nothing that the example or a server has said or drawn, be it that all goes well or that no server can be reached.
set -euo pipefail

program=$1
# shellcheck source=servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/servers.sh"
cd "$folder"

# Drawn anew, so that it is nowhere by chance; looked for by a file, so that looking does not show it.
head -c 12 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret
secret=$(<secret)

found()
{
  echo "the password is in $1"
  exit 1
}

# Passes when the server is up: somebody else may have the port.
try_redis()
{
  port=$(shuf -i 10000-32767 -n 1)
  : >"log$1"
  printf 'port %s\nbind 127.0.0.1\nrequirepass %s\nsave ""\nlogfile %s\nloglevel debug\n' "$port" "$secret" "$folder/log$1" |
    setpriv --pdeathsig KILL redis-server - >/dev/null 2>&1 &
  local server=$!
  until grep -q 'Ready to accept connections' "log$1"; do
    kill -0 "$server" 2>/dev/null || return 1
    sleep 0.02
  done
  servers+=("$server")
}

# Says whose arguments show the password; fails where nobody's do.
who_shows_it()
{
  local list
  list=$(grep -laFf secret /proc/[0-9]*/cmdline 2>/dev/null | sed -n 1p)
  [ -n "$list" ] || return 1
  tr '\0' ' ' <"$list" | cut -d ' ' -f 1
}

# That looking finds it where it is.
mkfifo silence
exec 3<>silence
setpriv --pdeathsig KILL sh -c 'read -r _' "$secret" <&3 &
servers+=($!)
until who_shows_it >/dev/null; do sleep 0.01; done
kill -KILL "${servers[@]}"
while who_shows_it >/dev/null; do sleep 0.01; done
servers=()

urls=
for i in 1 2 3; do
  again_where_a_port_is_taken "log$i" try_redis "$i"
  urls+=,redis://:$secret@127.0.0.1:$port
done

QUICKSTART_MASTERS=${urls#,} timeout 300 "$program" --seconds 5 --restart-guard 0 --svg "$folder/picture.svg" >said 2>&1 &
running=$!
looks=0
while kill -0 "$running" 2>/dev/null; do
  if who=$(who_shows_it); then found "the arguments of $who"; fi
  looks=$((looks + 1))
done
wait "$running" || { cat said; exit 1; }
[ "$looks" -gt 3 ] || { echo "looked at the lists of arguments $looks times only"; exit 1; }
grep -q 'sections' said || { cat said; echo "it did nothing"; exit 1; }

kill -KILL "${servers[@]}"
if QUICKSTART_MASTERS=${urls#,} timeout 300 "$program" --seconds 5 --svg "$folder/none.svg" >complaint 2>&1; then
  echo "it ended well without a server"
  exit 1
fi
grep -q 127.0.0.1 complaint || { cat complaint; echo "it does not say which server is missing"; exit 1; }

for one in said complaint log1 log2 log3 picture.svg; do
  [ -s "$one" ] || { echo "$one is missing"; exit 1; }
  if grep -qaFf secret "$one"; then found "$one"; fi
done
