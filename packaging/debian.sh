#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds Debian's source and binary packages of holdfast, on Debian and its kin.
#
#   packaging/debian.sh FOLDER       where the packages go; what is in it already is deleted
#
#   apt install ./FOLDER/holdfast-dev_*.deb      is enough for header-only use
#
# The archive of the source is CPack's; the binary packages are built from it, not from this folder.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../cmake/packages.sh
. "$root/cmake/packages.sh"
[ $# -eq 1 ] || { sed -n '4,10s/^# \{0,1\}//p' "$0"; exit 2; }
holdfast_need g++ cmake make hiredis zookeeper-client file dpkg-buildpackage

rm -rf "$1"
mkdir -p "$1"
cd "$1"
cmake -S "$root" -B archive -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_EXAMPLES=OFF >/dev/null
(cd archive && cpack --config CPackSourceConfig.cmake >/dev/null)
archive=$(basename archive/holdfast-*.tar.gz)
version=${archive#holdfast-} version=${version%.tar.gz}
mv "archive/$archive" "holdfast_$version.orig.tar.gz"
rm -r archive
tar xf "holdfast_$version.orig.tar.gz"
cp -r "holdfast-$version/packaging/debian" "holdfast-$version/debian"
cd "holdfast-$version"
dpkg-buildpackage --no-sign
cd ..
rm -r "holdfast-$version"
