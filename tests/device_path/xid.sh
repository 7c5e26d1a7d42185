#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: xid.sh TEXT: a GPU is lost in the middle of a job; the report of the rank that failed names it. A library stands in for the
# management library of NVIDIA's driver, which tells the agent of the lost GPU; the rank's device fails when the agent has told.
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck disable=SC2094 # the rank reads what the agent says
timeout 100 "$HORO_RUN" -np 1 sh -c 'until grep -q Xid "$0"; do sleep 0.05; done; exec "$GPU_RANK" breaks async=4:999 - ", 999)"' \
  "$scratch/err" >"$scratch/out" 2>"$scratch/err"
code=$?
if [[ $code -ne 4 || $(<"$scratch/err") != *"$1"* ]]; then
  echo "exit code $code; expected 4 and '$1' in:"
  head -60 "$scratch/out" "$scratch/err"
  exit 1
fi
