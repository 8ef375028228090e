#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds the reference, which fails if a public name has no comment; and shows that it does fail, for a member, a function
# and a class that lose theirs.
#
#   reference.sh FOLDER        the folder is made anew
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
rm -rf "$1"
mkdir -p "$1"
cd "$1"
"$root/docs/build.sh" reference
for page in index classholdfast_1_1mutex structholdfast_1_1lock__options namespaceholdfast conceptholdfast_1_1Lock; do
  [ -s reference/$page.html ] || { echo "There is no page $page.html." >&2; exit 1; }
done
if grep -lE 'detail_1_1|HOLDFAST_ABI' reference/*.html; then
  echo "These pages have what is not public." >&2
  exit 1
fi

mkdir without
cp -r "$root/docs" "$root/include" "$root/cmake" without
# without HEADER COMMENT: takes that line out of the header.
without() {
  local header=without/include/holdfast/$1
  cp "$header" kept.hpp
  grep -vxF "$2" kept.hpp >"$header" || [ $? -eq 1 ]  # 1: nothing else is in it
  ! cmp -s kept.hpp "$header" || { echo "There is no line '$2' in $1." >&2; exit 1; }
}
without lock/exclusive_calls.hpp '    /// Returns: the name that it was made with.'
without lock/leased_lock.hpp '/// Effects: `a.swap(b)`.'
without core/error.hpp "/// What an error is about, as data."
status=0
./without/docs/build.sh reference_without >said 2>&1 || status=$?
for name in 'Member name\(\)' 'Member swap\(' 'Compound holdfast::error_subject'; do
  if [ $status -eq 0 ] || ! grep -qE "$name.* is not documented" said; then
    echo "A missing comment on $name was not found (status $status):" >&2
    cat said >&2
    exit 1
  fi
done
