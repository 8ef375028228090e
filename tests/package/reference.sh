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
# refused HEADER COMMENT NAME: without that line of the header, the build fails and names what it was about.
refused() {
  local header=without/include/holdfast/$1 status=0
  cp "$header" kept.hpp
  grep -vxF "$2" kept.hpp >"$header" || [ $? -eq 1 ]  # 1: nothing else is in it
  ! cmp -s kept.hpp "$header" || { echo "There is no line '$2' in $1." >&2; exit 1; }
  ./without/docs/build.sh reference_without >said 2>&1 || status=$?
  cp kept.hpp "$header"
  if [ $status -eq 0 ] || ! grep -qE "$3.* is not documented" said; then
    echo "A missing comment on $3 was not found (status $status):" >&2
    cat said >&2
    exit 1
  fi
}
refused mutex.hpp '    /// Returns: the name that it was made with.' 'Member name\(\)'
refused lock/leased_lock.hpp '/// Effects: `a.swap(b)`.' 'Member swap\('
refused core/error.hpp "/// What an error is about, as data." 'Compound holdfast::error_subject'
