#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds Debian's source and binary packages of holdfast, on Debian and its kin.
#
#   packaging/debian.sh FOLDER       where the packages go; those of an earlier run are deleted. A folder that has
#                                    anything else in it is refused.
#
#   apt install ./FOLDER/holdfast-dev_*.deb      is enough for header-only use
#
# The archive of the source is CPack's; the binary packages are built from it, not from this folder. That of a clone has
# the files that git knows, as they are now.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../cmake/packages.sh
. "$root/cmake/packages.sh"
[ $# -eq 1 ] || { sed -n '4,12s/^# \{0,1\}//p' "$0"; exit 2; }

mkdir -p "$1"
folder=$(cd "$1" && pwd)
work=$folder/holdfast-build
shopt -s nullglob dotglob
for one in "$folder"/*; do
  case ${one##*/} in
    holdfast_*.orig.tar.gz | holdfast_*.debian.tar.* | holdfast_*.dsc | holdfast_*.buildinfo | holdfast_*.changes) ;;
    holdfast-dev_*.deb | libholdfast*_*.deb | holdfast-build) ;;
    *)
      echo "$folder has ${one##*/} in it, which this script did not make; name a new folder" >&2
      exit 2
      ;;
  esac
done
holdfast_need g++ cmake make hiredis zookeeper-client file dpkg-buildpackage

rm -rf "${folder:?}"/*
mkdir "$work"
tree=$root
if [ -e "$root/.git" ]; then
  holdfast_need git
  tree=$work/tree
  mkdir "$tree"
  # A file that is known, and was deleted, is left out.
  git -c "safe.directory=$root" -C "$root" ls-files -z |
    while IFS= read -rd '' file; do [ ! -e "$root/$file" ] || printf '%s\0' "$file"; done |
    tar --create --directory "$root" --null --files-from - | tar --extract --directory "$tree"
fi

cd "$work"
cmake -S "$tree" -B archive -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_EXAMPLES=OFF >/dev/null
(cd archive && cpack --config CPackSourceConfig.cmake >/dev/null)
archive=$(basename archive/holdfast-*.tar.gz)
version=${archive#holdfast-} version=${version%.tar.gz}
mv "archive/$archive" "holdfast_$version.orig.tar.gz"
tar xf "holdfast_$version.orig.tar.gz"
cp -r "holdfast-$version/packaging/debian" "holdfast-$version/debian"
(cd "holdfast-$version" && dpkg-buildpackage --no-sign)
mv holdfast_* ./*.deb "$folder"
rm -r "$work"
