#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# When the disk is full, the output files are lost but the job continues. The error is printed once.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

if [ "$(id -u)" -ne 0 ]; then
  echo "skipped: mounting a small file system needs root"
  exit 77
fi
mkdir "$scratch/small"
if ! mount -t tmpfs -o size=64k tmpfs "$scratch/small" 2>/dev/null; then
  echo "skipped: a file system cannot be mounted here"
  exit 77
fi
trap 'umount "$scratch/small"; rm -rf "$scratch"' EXIT

try timeout 60 horo run -np 2 --output-filename "$scratch/small/logs" bash -c \
  'for ((i = 0; i < 5000; i++)); do echo "line $i of rank $RANK, long enough to fill something small"; done'
expect "exit code" "$code" 0
expect "lines on the screen" "$(wc -l <<<"$out")" 10000
expect "number of warnings" "$(grep -c 'No space left' <<<"$err")" 1
expect_in "warning" "$err" "$scratch/small/logs/rank."
expect_in "warning" "$err" "the job continues"
