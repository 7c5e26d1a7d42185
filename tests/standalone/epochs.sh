#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One process calls init and shutdown many times: each time it gets a fresh board, and nothing leaks.
# shellcheck source=tests/standalone/lib.sh
. "$(dirname "$0")/lib.sh"

export HORO_JOB_ID=epochs-$$
by_hand 3 sum rounds=200
expect "exit codes by hand ($err)" "$codes" "0 0 0"
unset HORO_JOB_ID

try "$rank" rounds=200
expect "exit code of one process alone" "$code" 0

if [ -x "$HORO_BIN/horo-run" ]; then
  try horo-run -np 3 "$rank" sum rounds=200
  expect "exit code under horo run" "$code" 0
  # In a later epoch the agent still watches the ranks: their output, the failure grace and the report work.
  try horo-run -np 3 "$rank" rounds=2 only=1 kill lose
  expect "exit code of a loss in a later epoch" "$code" 137
  for r in 0 2; do
    expect_in "rank $r's words" "$out" "rank $r: peer_lost: rank 1 on localhost was lost: killed by signal 9 (SIGKILL)"
  done
  expect_in "the report" "$err" "rank 1"
  # Two programs run one after the other in the shell of one rank.
  # shellcheck disable=SC2016 # expanded by the ranks' shell
  try horo-run -np 2 bash -c '"$0" sum && "$0" sum' "$rank"
  expect "exit code of two programs in turn" "$code" 0
  # A child process of a rank that inherits the rank's variables does not become a second rank.
  # shellcheck disable=SC2016 # expanded by the rank's shell
  try horo-run -np 1 bash -c '"$0" sum stop & until grep -q "^State:.T" /proc/$!/status; do sleep 0.01; done
    "$0" sum; code=$?; kill -9 $!; exit $code' "$rank"
  expect_in "the child's error" "$err" "rank 0 of this job is process"
fi
