# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Sourced by the scripts here: a folder for what an example leaves, and servers that end with the script.
folder=$(mktemp -d /tmp/holdfast-XXXXXX)
servers=()

# shellcheck disable=SC2317
clean()
{
  local one
  for one in "${servers[@]}"; do
    while kill -KILL "$one"; do sleep 0.01; done
  done 2>/dev/null  # which says whom it has killed
  rm -rf "$folder"
}
trap clean EXIT

# again_where_a_port_is_taken LOG COMMAND…   does it until it succeeds; its failure is final where the log names another reason
again_where_a_port_is_taken()
{
  local log=$1
  shift
  until "$@"; do
    grep -q 'Address already in use' "$log" || { cat "$log"; exit 1; }
  done
}
