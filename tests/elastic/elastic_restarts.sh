#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An elastic job that is lost as a whole is started again.
# shellcheck source=tests/cli/lib.sh
. "$HORO_SOURCE/tests/cli/lib.sh"
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"

# until_err PATTERN: waits until a line of the launcher matches.
until_err() {
  for ((i = 0; i < 1200; i++)); do
    ! grep -qE "$1" "$scratch/err" || return 0
    kill -0 $job 2>/dev/null || break
    sleep 0.1
  done
  grep -qE "$1" "$scratch/err" || { err=$(<"$scratch/err") && fail "no line '$1' came"; }
}

# lose_all: kills both ranks.
lose_all() { kill -KILL "$(pid_of 0)" "$(pid_of 1)"; }

# All ranks die. The next attempt has new workers, which are numbered from the beginning, and no attempt follows the last one.
begin -np 2 --min-np 1 --slot-restarts 0 --max-restarts 1 --json-report "$scratch/report" --output-filename "$scratch/logs"
until_out 'generation 1, rank . of 2' 2
lose_all
until_out 'generation 1, rank . of 2' 4
lose_all
finish
expect "exit code" "$code" 137
expect_in "report" "$err" "horo: restarting the job, restart 1 of 1"
expect_in "report" "$err" "horo: not restarted: --max-restarts is used up"
expect_in "report" "$err" "  attempt 0 before: worker "
expect_in "JSON report" "$(<"$scratch/report")" '"restarts": 1'
expect "attempts in the output of worker 0" "$(grep -c 'generation 1, rank . of 2' "$scratch/logs/rank.0/stdout")" 2

# A failure of the program is its own.
make_bad() { touch "$folder/bad.all"; }
prepare=make_bad begin -np 2 --min-np 1 --slot-restarts 0 --max-restarts 3
finish
expect "exit code of a program that fails" "$code" 3
expect_in "report" "$err" "not restarted: this is a failure of the program"
expect "restarts" "$(grep -c 'restarting the job' <<<"$err")" 0

# No hosts are there for the next attempt. It begins when they have come back.
echo localhost:2 >"$scratch/slots"
begin -np 2 --min-np 2 --slot-restarts 0 --max-restarts 1 --host-discovery-script "cat $scratch/slots"
until_out 'generation 1, rank . of 2' 2
rm "$scratch/slots"
lose_all
until_err 'horo: the next attempt waits for hosts, for at most .*discovery script'
echo localhost:2 >"$scratch/slots"
until_out 'generation 1, rank . of 2' 4
rm "$scratch/slots"
kill -TERM $job
finish
expect "exit code" "$code" 143

# A signal ends a job that waits for its next attempt.
echo localhost:2 >"$scratch/slots"
begin -np 2 --min-np 2 --slot-restarts 0 --max-restarts 1 --host-discovery-script "cat $scratch/slots" --json-report "$scratch/report"
until_out 'generation 1, rank . of 2' 2
rm "$scratch/slots"
lose_all
until_err 'restarting the job, restart 1 of 1'
kill -TERM $job
finish
expect "exit code" "$code" 143
expect_in "report" "$err" "horo: not restarted: stopped by signal 15"
expect_in "JSON report" "$(<"$scratch/report")" '"exit_code": 143'
