#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   who_holds.sh PROGRAM URL
#
# Passes when the program names the holder of a lock, asks it for the lock, and breaks that; when it leaves no key of
# its own; and when it takes a URL from the environment. The lock is written as docs/redis.md says that a client leaves it.
set -euo pipefail

program=$1
url=$2

redis() { redis-cli -s "${url#unix://}" "$@"; }
shown() { "$program" "$url" 'any[*]'; }

token=0123456789abcdef0123456789abcdef
redis SET 'any[*]orders' "$token" PX 60000
redis SET 'holdfast:holder:{any[*]orders}' "$token $(date +%s%6N) 7 host=there pid=42 label=billing" PX 60000
redis SET anyone "$token" PX 60000  # its name does not begin with the prefix
keys=$(redis DBSIZE)

held='"any\[\*\]orders" is held by billing on there, process 42, for [0-9]+ ms; '
held+='its lease lasts [0-9]+ ms, fencing token 7'
said=$(shown)
echo "$said"
grep -Exq "$held" <<<"$said"
[ "$(wc -l <<<"$said")" -eq 1 ]
[ "$(redis DBSIZE)" = "$keys" ]

# A URL that no list of arguments shows.
grep -Exq "$held" <<<"$(HOLDFAST_URL=$url "$program" - 'any[*]')"
if said=$(HOLDFAST_URL=redis://:secret@127.0.0.1:1 "$program" - 2>&1); then
  echo "it ended well without a server"
  exit 1
fi
echo "$said"
grep -q 127.0.0.1 <<<"$said"
[[ $said != *secret* ]]
if said=$(env -u HOLDFAST_URL "$program" - 2>&1); then
  echo "it ended well without a URL"
  exit 1
fi
grep -q HOLDFAST_URL <<<"$said"

[ "$("$program" "$url" ask 'any[*]orders')" = "done" ]
grep -Exq "$held; it is asked to release the lock" <<<"$(shown)"
[ "$("$program" "$url" break 'any[*]orders')" = "done" ]
[ -z "$(shown)" ]
