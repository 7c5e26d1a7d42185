#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --max-restarts: what is not the program's fault is tried again, what is its fault is not.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# Killed twice, as by the system, once the other has spoken; the third attempt ends well.
export scratch
try timeout 60 horo run -np 2 --max-restarts 3 --json-report "$scratch/report" --output-filename "$scratch/logs" bash -c '
  echo "$RANK $HORO_RESTART_COUNT $TORCHELASTIC_RESTART_COUNT $HORO_JOB_ID $MASTER_PORT"
  touch "$scratch/spoke.$RANK.$HORO_RESTART_COUNT"
  [ $RANK = 1 ] && [ $HORO_RESTART_COUNT -lt 2 ] || exec sleep 0.5
  until [ -e "$scratch/spoke.0.$HORO_RESTART_COUNT" ]; do sleep 0.02; done
  kill -KILL $$'
expect "exit code" "$code" 0
for attempt in 0 1 2; do
  expect "ranks of attempt $attempt" "$(grep -c "^\[[01]\] [01] $attempt $attempt " <<<"$out")" 2
done
expect "names of attempts" "$(awk '{print $5}' <<<"$out" | sort -u | wc -l)" 3
expect_in "report" "$err" "horo: rank 1 on localhost failed first: killed by signal 9 (SIGKILL)"
expect_in "report" "$err" "horo: starting anew, restart 2 of 3"
expect "lines in a file" "$(wc -l <"$scratch/logs/rank.0/stdout")" 3
expect_in "JSON report" "$(<"$scratch/report")" '"restarts": 2'
expect_in "JSON report" "$(<"$scratch/report")" '"exit_code": 0'
expect "earlier attempts in the JSON report" "$(grep -c '"failure": "rank 1 on localhost failed first: killed' "$scratch/report")" 2

# No more than allowed; the last attempt's code is the job's, and the report has all of them.
try timeout 60 horo run -np 2 --max-restarts 1 bash -c '[ $RANK = 1 ] && kill -KILL $$; sleep 5'
expect "exit code" "$code" 137
expect "attempts" "$(grep -c 'failed first' <<<"$err")" 3
expect_in "report" "$err" "  attempt 0 before: rank 1 on localhost failed first"
expect_in "report" "$err" "horo: not restarted: --max-restarts is used up"

# An agent that is killed.
try timeout 60 horo run -np 2 --max-restarts 1 bash -c '[ $RANK = 1 ] && [ $HORO_RESTART_COUNT = 0 ] && kill -KILL $PPID; sleep 0.2'
expect "exit code after an agent's death" "$code" 0
expect_in "report" "$err" "horo: starting anew, restart 1 of 1"

# The program's own failures are its own, unless they are listed.
try timeout 60 horo run -np 2 --max-restarts 5 bash -c 'exit 3'
expect "exit code" "$code" 3
expect_in "report" "$err" "horo: not restarted: this is a failure of the program (see --restart-on)"
try timeout 60 horo run -np 2 --max-restarts 5 --restart-on 75,SIGUSR1 bash -c '[ $HORO_RESTART_COUNT = 1 ] || exit 75'
expect "exit code" "$code" 0
try timeout 60 horo run -np 2 --max-restarts 5 bash -c 'kill -SEGV $$'
expect "exit code" "$code" 139
try timeout 60 horo run -np 2 --max-restarts 5 /nowhere/program
expect "exit code" "$code" 127

# --timeout is that of all attempts together, and a signal ends the job while it waits.
try timeout 60 horo run -np 1 --max-restarts 50 --timeout 2 bash -c 'sleep 0.5; kill -KILL $$'
case $code in 124 | 137) ;; *) fail "exit code $code of a job whose time was up" ;; esac
for signal in TERM USR1; do
  horo run -np 1 --max-restarts 50 --signal usr1 bash -c 'kill -KILL $$' >"$scratch/out" 2>"$scratch/err.$signal" </dev/null &
  job=$!
  until [ "$(grep -c 'starting anew' "$scratch/err.$signal" 2>/dev/null)" -ge 3 ] 2>/dev/null; do sleep 0.02; done
  kill -$signal "$job"
  wait "$job"
  code=$?
  if [ $signal = TERM ]; then wanted=143; else wanted=75; fi
  expect "exit code of a job that waited, after SIG$signal" "$code" "$wanted"
done

refused "--max-restarts 'often' is not a number" horo run -np 1 --max-restarts often true
refused "'600' in --restart-on" horo run -np 1 --max-restarts 1 --restart-on 600 true
