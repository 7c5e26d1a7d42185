#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh RANKS TEXT SCENARIO [ARGUMENT ...]: runs gpu_rank, and expects TEXT in its output.
set -uo pipefail
ranks=$1 expected=$2
shift 2
output=$("$HORO_RUN" -np "$ranks" "$GPU_RANK" "$@" 2>&1)
code=$?
if [[ $code -ne ${EXPECTED_CODE:-0} || $output != *"$expected"* ]]; then
  echo "exit code $code; expected ${EXPECTED_CODE:-0} and '$expected' in:"
  echo "$output" | head -60
  exit 1
fi
