#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --max-restarts restarts a job after failures outside the program, and not after failures of the program.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# A rank is killed twice by a signal, each time after the other rank has written; the third attempt succeeds.
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
expect_in "report" "$err" "horo: restarting the job, restart 2 of 3"
expect "lines in a file" "$(wc -l <"$scratch/logs/rank.0/stdout")" 3
expect_in "JSON report" "$(<"$scratch/report")" '"restarts": 2'
expect_in "JSON report" "$(<"$scratch/report")" '"exit_code": 0'
expect "earlier attempts in the JSON report" "$(grep -c '"failure": "rank 1 on localhost failed first: killed' "$scratch/report")" 2

# The number of restarts is limited. The job's exit code is that of the last attempt, and the report lists all attempts.
try timeout 60 horo run -np 2 --max-restarts 1 bash -c '[ $RANK = 1 ] && kill -KILL $$; sleep 5'
expect "exit code" "$code" 137
expect "attempts" "$(grep -c 'failed first' <<<"$err")" 3
expect_in "report" "$err" "  attempt 0 before: rank 1 on localhost failed first"
expect_in "report" "$err" "horo: not restarted: --max-restarts is used up"

# The agent is killed.
try timeout 60 horo run -np 2 --max-restarts 1 bash -c '[ $RANK = 1 ] && [ $HORO_RESTART_COUNT = 0 ] && kill -KILL $PPID; sleep 0.2'
expect "exit code after an agent's death" "$code" 0
expect_in "report" "$err" "horo: restarting the job, restart 1 of 1"

# The agent stays: both attempts have the same one. It is the ranks' parent.
try timeout 60 horo run -np 2 --tag off --verbose --max-restarts 2 --restart-on 9 bash -c 'echo "agent $PPID"; [ $HORO_RESTART_COUNT = 2 ] || exit 9'
expect "exit code with agents that stay" "$code" 0
expect "agents of three attempts" "$(grep '^agent ' <<<"$out" | sort -u | wc -l)" 1
expect_in "verbose output" "$err" "all ranks have started; 1 of 1 agents are those of the attempt before"
agent=$(sed -n 's/^agent //p;T;q' <<<"$out")
[ ! -e "/proc/$agent" ] || fail "agent $agent has outlived the job"

# A process that a rank has left behind ends before the next attempt begins.
try timeout 60 horo run -np 1 --tag off --max-restarts 1 --restart-on 9 bash -c '
  if [ $HORO_RESTART_COUNT = 0 ]; then
    setsid bash -c "trap \"\" TERM; sleep 1000" >/dev/null 2>&1 </dev/null &
    echo $! >"$scratch/left"
    exit 9
  fi
  [ ! -e "/proc/$(<"$scratch/left")" ] || echo "it is still there"'
expect "exit code after a process was left" "$code" 0
expect "the process of the attempt before" "$out" ""

# The agent is killed between two attempts: another one takes its place.
export scratch

# second_pause: waits until the job is between its second and its third attempt. Sets $agent to the agent's process.
second_pause() {
  agent=
  until [ "$(grep -c 'restarting the job, restart' "$scratch/err" 2>/dev/null)" = 2 ] && [ -n "$agent" ]; do
    sleep 0.02
    agent=$(sed -n '2s/^agent //p' "$scratch/out" 2>/dev/null)
  done
}

horo run -np 1 --tag off --max-restarts 3 --restart-on 9 bash -c 'echo "agent $PPID"; [ $HORO_RESTART_COUNT = 2 ] || exit 9' \
  >"$scratch/out" 2>"$scratch/err" </dev/null &
job=$!
second_pause # The second restart waits for a second.
kill -KILL "$agent"
wait "$job"
expect "exit code after an agent was killed between attempts: $(<"$scratch/err")" $? 0
expect "agents" "$(sort -u "$scratch/out" | wc -l)" 2
expect "restarts" "$(grep -c 'restarting the job, restart' "$scratch/err")" 2

# The launcher is killed between two attempts: its agent ends.
rm "$scratch/out" "$scratch/err"
horo run -np 1 --tag off --max-restarts 3 --restart-on 9 bash -c 'echo "agent $PPID"; exit 9' >"$scratch/out" 2>"$scratch/err" </dev/null &
job=$!
second_pause
[ -e "/proc/$agent" ] || fail "agent $agent does not wait for the next attempt"
kill -KILL "$job"
wait "$job"
for ((i = 0; i < 500; i++)); do
  [ -e "/proc/$agent" ] || break
  sleep 0.02
done
[ ! -e "/proc/$agent" ] || fail "agent $agent has outlived its launcher"

# Failures of the program are not restarted unless their exit codes are listed.
try timeout 60 horo run -np 2 --max-restarts 5 bash -c 'exit 3'
expect "exit code" "$code" 3
expect_in "report" "$err" "horo: not restarted: this is a failure of the program (see --restart-on)"
try timeout 60 horo run -np 2 --max-restarts 5 --restart-on 75,SIGUSR1 bash -c '[ $HORO_RESTART_COUNT = 1 ] || exit 75'
expect "exit code" "$code" 0
try timeout 60 horo run -np 2 --max-restarts 5 bash -c 'kill -SEGV $$'
expect "exit code" "$code" 139
try timeout 60 horo run -np 2 --max-restarts 5 /nowhere/program
expect "exit code" "$code" 127

# --timeout covers all attempts together. A signal ends the job while it waits for the next attempt.
try timeout 60 horo run -np 1 --max-restarts 50 --timeout 2 --json-report "$scratch/report" bash -c 'sleep 0.5; kill -KILL $$'
case $code in 124 | 137) ;; *) fail "exit code $code of a job that reached its timeout" ;; esac
expect_in "JSON report of a job that reached its timeout" "$(<"$scratch/report")" "\"exit_code\": $code"
for signal in TERM USR1; do
  horo run -np 1 --max-restarts 50 --signal usr1 --json-report "$scratch/report" bash -c 'kill -KILL $$' \
    >"$scratch/out" 2>"$scratch/err.$signal" </dev/null &
  job=$!
  until [ "$(grep -c 'restarting the job, restart' "$scratch/err.$signal" 2>/dev/null)" -ge 3 ] 2>/dev/null; do sleep 0.02; done
  kill -$signal "$job"
  wait "$job"
  code=$?
  if [ $signal = TERM ]; then wanted=143; else wanted=75; fi
  expect "exit code of a job that waited, after SIG$signal" "$code" "$wanted"
  expect_in "standard error" "$(<"$scratch/err.$signal")" "(SIG$signal) came while the job waited for its next attempt"
  python3 - "$scratch/report" "$signal" "$code" <<'PY' || fail "the report of a job that waited is wrong"
import json, signal, sys
report = json.load(open(sys.argv[1]))
assert report["exit_code"] == int(sys.argv[3]), report
assert report["stop_signal"] == signal.Signals["SIG" + sys.argv[2]], report
assert report["queue_again"] == (sys.argv[2] == "USR1"), report
assert report["first_failure"]["signal"] == 9 and report["restarts"] >= 2, report
PY
done

refused "--max-restarts 'often' is not a number" horo run -np 1 --max-restarts often true
refused "'600' in --restart-on" horo run -np 1 --max-restarts 1 --restart-on 600 true
