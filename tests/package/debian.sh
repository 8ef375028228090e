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

# A clone, in which a file is that git does not know; the packages go into a folder of it.
root=$(cd "$here/../.." && pwd)
source=$folder/source
rm -rf "$source" "$folder/all"
mkdir -p "$source" "$folder/all"
if [ -e "$root/.git" ]; then
  git -c "safe.directory=$root" -C "$root" ls-files -z >"$folder/files"
else
  (cd "$root" && find . -path ./build -prune -o -type f -print0) >"$folder/files"
fi
tar --create --directory "$root" --ignore-failed-read --null --files-from "$folder/files" |
  tar --extract --directory "$source"
git -C "$source" init --quiet
git -C "$source" add .
echo "a secret" >"$source/untracked"
build() { DEB_BUILD_OPTIONS=noopt DEB_CXXFLAGS_APPEND=-g0 "$source/packaging/debian.sh" "$source/packages"; }

# A folder with something else in it is left as it is.
mkdir -p "$source/packages"
touch "$source/packages/mine"
if build 2>"$folder/said"; then
  echo "a folder was taken that has other files in it"
  exit 1
fi
grep -q 'has mine in it' "$folder/said"
rm "$source/packages/mine"
touch "$source/packages/holdfast-dev_0.0.1-1_all.deb"

build  # nobody waits for these programs
cd "$source"
[ ! -e packages/holdfast-dev_0.0.1-1_all.deb ]
tar tzf packages/holdfast_*.orig.tar.gz >"$folder/files"
grep -q '/CMakeLists.txt$' "$folder/files"
if grep -E '/(untracked|packages/)' "$folder/files"; then
  echo "the source package has files that git does not know"
  exit 1
fi

# The fields of debian/control that CPack has to write, too.
for package in holdfast-dev libholdfast0.2 libholdfast-dev; do
  [ "$(dpkg-deb -f packages/"$package"_*.deb Source)" = holdfast ]
  wanted=$(sed -n "/^Package: $package$/,/^Description/s/^Multi-Arch: //p" packaging/debian/control)
  [ "$wanted" ]
  [ "$(dpkg-deb -f packages/"$package"_*.deb Multi-Arch)" = "$wanted" ]
done

# What is for all machines is built alone, without the library; all have the version that the changelog says.
dpkg-source --extract packages/holdfast_*.dsc "$folder/all/tree" >/dev/null
(
  cd "$folder/all/tree"
  sed -i '1s/-1)/-2ours1)/' debian/changelog
  dpkg-buildpackage --no-sign --build=all >"$folder/said" 2>&1 || { cat "$folder/said"; exit 1; }
  debian/rules --dry-run binary-arch >"$folder/said"
  grep -q 'CPACK_COMPONENTS_ALL=library;library-dev"' "$folder/said"
)
(cd "$folder/all" && ls -- *.deb) >"$folder/said"
[ "$(cat "$folder/said")" = "holdfast-dev_$(dpkg-deb -f packages/holdfast-dev_*.deb Version | sed 's/-1$/-2ours1/')_all.deb" ]

# What lintian says of a version that nobody asked Debian for; and CPack's way to call ldconfig, beside which there is a
# trigger. The archive in libholdfast-dev would take it longer than all the rest. Of the source package it says
# nothing more.
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error \
    --suppress-tags initial-upload-closes-no-bugs,maintscript-calls-ldconfig \
    packages/holdfast-dev_*.deb packages/libholdfast0.2_*.deb
fi
apt-get --simulate install ./packages/holdfast-dev_*.deb | grep '^Inst holdfast-dev'

cd "$folder"
rm -rf root
mkdir root
dpkg-deb --extract "$source"/packages/holdfast-dev_*.deb root
if grep -r "$(dpkg-architecture --query DEB_HOST_MULTIARCH)" root; then
  echo "the package for all machines names one of them"
  exit 1
fi
export PKG_CONFIG_PATH=$PWD/root/usr/share/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs holdfast-memory)"
"$CXX" -std=c++20 "$here/use_memory.cpp" "${flags[@]}" -o use_memory
./use_memory

for package in "$source"/packages/libholdfast*.deb; do dpkg-deb --extract "$package" root; done
