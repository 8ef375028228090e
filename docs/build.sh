#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Makes the reference of the public names from the comments in the headers, as pages for a browser.
#
#   docs/build.sh [FOLDER]       build/reference in the source tree; what is in it already is deleted
#
# Ends with 1 if a public name has no comment. What is public is said in docs/api/Doxyfile.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../cmake/packages.sh
. "$root/cmake/packages.sh"
HOLDFAST_REFERENCE=$(realpath -m "${1:-$root/build/reference}")
holdfast_need doxygen

cd "$root"
rm -rf "$HOLDFAST_REFERENCE"
mkdir -p "$HOLDFAST_REFERENCE"
HOLDFAST_VERSION=$(sed -n 's/^#define HOLDFAST_VERSION_[A-Z]* //p' include/holdfast/core/version.hpp | paste -sd.)
export HOLDFAST_REFERENCE HOLDFAST_VERSION
doxygen docs/api/Doxyfile
echo "$HOLDFAST_REFERENCE/index.html"
