#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds the Debian packages, has lintian and apt look at them, and builds and runs a program with what is in
# holdfast-dev alone. Then unpacks all of them in FOLDER/root, for the tests of libholdfast.
#
#   debian.sh FOLDER COMPILER
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1
export CXX=$2

# Nobody waits for these programs.
DEB_BUILD_OPTIONS=noopt DEB_CXXFLAGS_APPEND=-g0 "$here/../../packaging/debian.sh" "$folder/packages"
cd "$folder"

# What lintian says of a version that nobody asked Debian for; and CPack's way to call ldconfig, beside which there is a
# trigger. The archive in libholdfast-dev would take it longer than all the rest. Of the source package it says
# nothing more.
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error \
    --suppress-tags initial-upload-closes-no-bugs,maintscript-calls-ldconfig \
    packages/holdfast-dev_*.deb packages/libholdfast0.2_*.deb
fi
apt-get --simulate install ./packages/holdfast-dev_*.deb | grep '^Inst holdfast-dev'

rm -rf root
mkdir root
dpkg-deb --extract packages/holdfast-dev_*.deb root
export PKG_CONFIG_PATH=$PWD/root/usr/share/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs holdfast-memory)"
"$CXX" -std=c++20 "$here/use_memory.cpp" "${flags[@]}" -o use_memory
./use_memory

for package in packages/libholdfast*.deb; do dpkg-deb --extract "$package" root; done
