#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The ends of elastic jobs: failures, limits and signals. Nothing is left behind.
# shellcheck source=tests/cli/lib.sh
. "$HORO_SOURCE/tests/cli/lib.sh"
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"

make_bad() { touch "$folder/bad.all"; }

# The training ends by itself.
steps=5 begin -np 3 --min-np 1
finish
expect "exit code" "$code" 0
expect "workers at the end" "$(grep -c ': done at step 5' <<<"$out")" 3

# All ranks die.
begin -np 2 --min-np 1 --slot-restarts 0
until_out 'generation 1, rank . of 2' 2
kill -KILL "$(pid_of 0)" "$(pid_of 1)"
finish
expect "exit code when all die" "$code" 137

# A program that fails at once, on every attempt.
prepare=make_bad begin -np 2 --min-np 1 --slot-restarts 1
finish
expect "exit code of a program that fails at once" "$code" 3

# Ctrl-C, and SIGTERM.
for signal in INT TERM; do
  begin -np 2 --min-np 1
  until_out 'generation 1, rank . of 2' 2
  kill "-$signal" "$job"
  finish
  case $signal in INT) wanted=130 ;; TERM) wanted=143 ;; esac
  expect "exit code after SIG$signal" "$code" "$wanted"
  expect_in "report" "$err" "SIG$signal"
done

# The time limit.
begin -np 2 --min-np 1 --timeout 3
finish
[ "$code" -ne 0 ] || fail "a job that ran into its limit succeeded"
expect_in "report" "$err" "timeout"

# Too few slots: the job ends after the time-out, and names what is missing.
echo localhost:1 >"$scratch/slots"
begin -np 3 --min-np 2 --elastic-timeout 2 --host-discovery-script "cat $scratch/slots"
finish
[ "$code" -ne 0 ] || fail "a job without enough slots succeeded"
expect_in "report" "$err" "localhost"

# No change is allowed.
begin -np 3 --min-np 1 --reset-limit 0
until_out 'generation 1, rank . of 3' 3
kill -KILL "$(pid_of 1)"
finish
[ "$code" -ne 0 ] || fail "a job with reset limit 0 survived a loss"
expect_in "report" "$err" "reset"

# The launcher is killed: so are the ranks.
begin -np 2 --min-np 1
until_out 'generation 1, rank . of 2' 2
kill -KILL $job
wait $job 2>/dev/null
for ((i = 0; i < 100; i++)); do
  kill -0 "$(pid_of 0)" 2>/dev/null || kill -0 "$(pid_of 1)" 2>/dev/null || break
  sleep 0.1
done
! kill -0 "$(pid_of 0)" 2>/dev/null || fail "a rank survived the launcher"
