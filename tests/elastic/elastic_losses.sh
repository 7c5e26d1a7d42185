#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks of an elastic job are killed on one host: the others go on in the same processes.
# shellcheck source=tests/cli/lib.sh
. "$HORO_SOURCE/tests/cli/lib.sh"
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"

# One of four ranks is killed, and nothing replaces it: three go on, and the job ends well.
begin -np 4 --min-np 2 --max-np 4 --slot-restarts 0 --blacklist-cooldown-range 3600,3600 --json-report "$scratch/report" \
  --autotune --autotune-memory off --autotune-log-file "$scratch/tuning.csv"
until_out 'generation 1, rank . of 4' 4
before=$(pid_of 0)
kill -KILL "$(pid_of 1)"
until_out 'generation 2, rank . of 3' 3
expect "process of worker 0" "$(pid_of 0)" "$before"
touch "$folder/stop"
finish
expect "exit code" "$code" 0
expect_in "rank of worker 0" "$out" 'worker 0: generation 2, rank 0 of 3'
expect "workers at the end" "$(grep -c ': done at step' <<<"$out")" 3
expect_in "a line about the loss" "$err" "signal 9"
expect "generations in the report" "$(grep -o '"generation":' "$scratch/report" | wc -l)" 2
expect_in "the report" "$(<"$scratch/report")" '"survivors": 3'
expect_in "a line of rank 0 about the training" "$err" "generation 2: training goes on after 250 ms; 2 steps are repeated"
expect_in "the report" "$(<"$scratch/report")" '"repeated_steps": 2'

# A later generation's log does not overwrite that of an earlier one.
for log in tuning.csv tuning.g2.csv; do
  expect "searches in $log" "$(grep -c '^hierarchical_allreduce,' "$scratch/$log")" 1
done

# The lost rank is replaced by a new process, which gets the step of the others.
begin -np 4 --min-np 2 --max-np 4
until_out 'generation 1, rank . of 4' 4
kill -KILL "$(pid_of 2)"
until_out 'worker 4: generation ., rank 3 of 4, step [1-9]'
touch "$folder/stop"
finish
expect "exit code with a replacement" "$code" 0
expect "workers at the end" "$(grep -c ': done at step' <<<"$out")" 4

# Rank 0 is killed first, and the next one while the ranks meet again.
begin -np 4 --min-np 1 --max-np 4
until_out 'generation 1, rank . of 4' 4
kill -KILL "$(pid_of 0)"
kill -KILL "$(pid_of 3)"
until_out 'generation ., rank 3 of 4' 2
touch "$folder/stop"
finish
expect "exit code after two losses at once" "$code" 0
grep -qE 'worker 1: generation ., rank 0 of' <<<"$out" || fail "the oldest survivor did not become rank 0"

# A rank that hangs after a loss is ended, by name.
begin -np 3 --min-np 1 --max-np 3 --rejoin-timeout 2
until_out 'generation 1, rank . of 3' 3
touch "$folder/hang.1"
sleep 1
kill -KILL "$(pid_of 2)"
until_out 'generation ., rank 0 of' 2
touch "$folder/stop"
rm -f "$folder/hang.1"
finish
expect "exit code after a hang" "$code" 0
expect_in "a line about the rank that hung" "$err" "worker 1"

# A spare takes the place of a lost rank.
begin -np 2 --min-np 2 --max-np 2 --spares 1
until_out 'generation 1, rank . of 2' 2
kill -KILL "$(pid_of 1)"
until_out 'worker 2: generation 2, rank 1 of 2'
touch "$folder/stop"
finish
expect "exit code with a spare" "$code" 0
