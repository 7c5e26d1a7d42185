#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The exit code is that of the first rank that fails, or 128 plus the signal number if a signal ended that rank.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

try timeout 30 horo run -np 4 true
expect "exit code of a good end" "$code" 0
expect "standard error of a good end" "$err" ""

try timeout 30 horo run -np 2 sh -c '[ "$RANK" = 0 ] || exit 7; exec sleep 20'
expect "exit code" "$code" 7

for signal in SEGV KILL ABRT; do
  try timeout 30 horo run -np 2 bash -c 'ulimit -c 0; [ "$RANK" = 0 ] || kill -'$signal' $$; exec sleep 20'
  expect "exit code after SIG$signal" "$code" $((128 + $(kill -l "$signal")))
  expect_in "report" "$err" "(SIG$signal)"
done

# The exit codes of ranks that the launcher stopped do not count.
export scratch
try timeout 30 horo run -np 3 bash -c '
  trap "exit 9" TERM
  touch "$scratch/ready$RANK"
  if [ "$RANK" = 1 ]; then until [ -e "$scratch/ready0" ] && [ -e "$scratch/ready2" ]; do sleep 0.02; done; exit 5; fi
  sleep 20 & wait'
expect "exit code" "$code" 5
expect_in "report" "$err" "ranks 0 and 2 ended afterwards: exit code 9"

# A rank that ends successfully does not stop the others.
try timeout 30 horo run -np 2 sh -c '[ "$RANK" = 0 ] || sleep 0.3; echo end'
expect "exit code" "$code" 0
expect "number of ends" "$(grep -c end <<<"$out")" 2

# Ranks that ignore SIGTERM get SIGKILL after the grace time.
try timeout 30 horo run -np 2 --grace 0.2 bash -c '
  if [ "$RANK" = 1 ]; then until [ -e "$scratch/deaf" ]; do sleep 0.02; done; exit 3; fi
  trap "" TERM
  touch "$scratch/deaf"
  while :; do sleep 1; done'
expect "exit code" "$code" 3
expect_in "report" "$err" "rank 0 ended afterwards: killed by signal 9 (SIGKILL)"
