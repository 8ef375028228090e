#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   once.sh PROGRAM URL
#
# Passes when of eight hosts that start the job at the same time one runs it, and later none.
set -euo pipefail

ran=$(for _ in 1 2 3 4 5 6 7 8; do "$1" "$2" reports/daily 3300 & done; wait)
ran+=$'\n'$("$1" "$2" reports/daily 3300)
echo "$ran"
[ "$(grep -c '^it runs here, with fencing token [1-9]' <<<"$ran")" -eq 1 ]
[ "$(grep -c '^it runs elsewhere' <<<"$ran")" -eq 8 ]
