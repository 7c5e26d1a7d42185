#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks that a shell started share one host's memory, on any processor: they sum, join again, and hear of a loss.
# shellcheck source=tests/standalone/lib.sh
. "$(dirname "$0")/lib.sh"

export HORO_JOB_ID=shared-memory-$$
by_hand 2 identity sum rounds=2 sum
expect "exit codes of two ranks" "$codes" "0 0"
expect "places of two ranks" "$out" "rank 0 of 2, local 0 of 2, cross 0 of 1
rank 1 of 2, local 1 of 2, cross 0 of 1"

export HORO_JOB_ID=shared-memory-lost-$$
by_hand 2 sum only=1 exit=7 lose
expect "exit codes around a rank that ends" "$codes" "0 7"
expect_in "the other rank's words" "$out" "rank 1"
