#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Losses during a run: a rank fails, a host vanishes, the launcher or a connection is killed. No process stays.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 3

# empty_output: before a job in the background, whose own redirection may come after the first look at the file.
empty_output() { : >"$scratch/out"; }

# start ARGUMENT...: starts a job in the background and waits until its ranks run; $job is its process id.
start() {
  empty_output
  horo run -H h1:2,h2:2,h3:2 --tag off "$@" sh -c 'echo "rank $RANK"; sleep 1000 & wait' \
    >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  eventually "six ranks" '[ "$(grep -c "^rank" "$scratch/out")" = 6 ]'
}

# ends: waits for the job.
ends() {
  wait "$job"
  code=$?
  out=$(<"$scratch/out")
  err=$(<"$scratch/err")
}

# A rank fails: the report names the rank and its host, and horo run ends with the rank's exit code.
try timeout 60 horo run -H h1:2,h2:2 --tag off sh -c '[ "$RANK" = 3 ] || sleep 1000; echo last words; exit 9'
expect "exit code of a failed rank" "$code" 9
expect_in "the report" "$err" "rank 3 on h2 failed first: exit code 9"
expect_in "the report" "$err" "| last words"
nothing_left h1 h2

# A rank is killed.
start
on h2 bash -c 'kill -KILL "$(pgrep -f "echo .rank" | head -n 1)"'
ends
expect "exit code of a killed rank" "$code" 137
expect_in "the report" "$err" "on h2 failed first: killed by signal 9 (SIGKILL)"
nothing_left h1 h2 h3

# A rank is killed, and its agent is slow to report it. Other hosts learn of it from their ranks, end, and their agents
# report first. The killed rank is still named as the first failure.
stall_rank=$HORO_BIN/../tests/stall_rank
horo run -H h1:2,h2:1 --tag off "$stall_rank" reduce=one only=2 "until=$scratch/stop" lose=last \
  >"$scratch/out" 2>"$scratch/err" </dev/null &
job=$!
eventually "ranks that wait" '[ "$(horo top --once 2>&1 | grep -c " waits for 2 .* last")" = 2 ]'
on h2 pkill -STOP -x horo-agent
on h2 pkill -KILL -f "^$stall_rank"
eventually "ranks that have heard" '[ "$(grep -c "^rank . at " "$scratch/out")" = 2 ]'
eventually "the end of the other host's agent, which has told the launcher of its ranks before" \
  '! on h1 pgrep -x horo-agent >"$scratch/agents"'
on h2 pkill -CONT -x horo-agent
ends
expect "exit code of a killed rank that is told late" "$code" 137
expect_in "the report" "$err" "rank 2 on h2 failed first: killed by signal 9 (SIGKILL)"
expect_in "the report" "$err" "ranks 0 and 1 ended afterwards: exit code 7"
nothing_left h1 h2

# Signals, two signals, and the job's timeout.
start
kill -TERM "$job"
ends
expect "exit code after SIGTERM" "$code" 143
nothing_left h1 h2 h3
start --timeout 3
ends
expect "exit code after --timeout" "$code" 124
expect_in "the report" "$err" "--timeout 3.00 s passed"
nothing_left h1 h2 h3

# The launcher is killed: all processes of the job end on all hosts.
start
kill -KILL "$job"
ends
nothing_left h1 h2 h3
start --ssh-program ssh
kill -KILL "$job"
ends
nothing_left h1 h2 h3

# The remote end of a connection is killed: that host is lost, and all others end.
start
session=$(on h3 pgrep -f 'sshd: root@notty')
on h3 kill -KILL "$session"
ends
expect "exit code of a lost connection" "$code" 125
expect_in "the report" "$err" "host h3 was lost after "
expect_in "the report" "$err" "ranks 4 and 5 lost with the host"
nothing_left h1 h2 h3
# The local end of a connection is killed.
start --ssh-program ssh
kill -KILL "$(pgrep -f 'ssh -T.* h2 ')"
ends
expect "exit code of a killed ssh" "$code" 125
expect_in "the report" "$err" "host h2 was lost after "
expect_in "the report" "$err" "was killed by signal 9"
nothing_left h1 h2 h3

# An agent is killed, then both halves of an agent at once.
start
on h1 pkill -KILL -x horo-agent
ends
expect "exit code of a killed agent" "$code" 125
expect_in "the report" "$err" "host h1 was lost after "
nothing_left h1 h2 h3
start
on h1 bash -c 'kill -KILL $(pgrep -x horo-agent) $(pgrep -x job-guard)'
ends
expect "exit code of a killed pair" "$code" 125
nothing_left h1 h2 h3

# All processes with horo in their names or command lines are killed on a host, as people end jobs.
for how in "" -f; do
  start
  # shellcheck disable=SC2086 # Empty or one word.
  on h2 pkill -KILL $how horo
  ends
  expect "exit code after pkill -9 $how horo on a host" "$code" 125
  expect_in "the report" "$err" "host h2 was lost after "
  nothing_left h1 h2 h3
done
# The command line of the host's sshd has horo in it too; hosts.sh starts it again.
eventually "the ssh server of h2" '(: </dev/tcp/10.83.0.2/22) 2>/dev/null'

# The agent and all its helpers are killed at once: only processes that the ranks have forked could stay.
empty_output
horo run -H h1:1,h2:1 --tag off sh -c 'echo "rank $RANK"; exec sleep 1000' >"$scratch/out" 2>"$scratch/err" </dev/null &
job=$!
eventually "two ranks" '[ "$(grep -c "^rank" "$scratch/out")" = 2 ]'
on h2 bash -c 'kill -KILL $(pgrep -x horo-agent) $(pgrep -x job-guard) $(pgrep -x job-sweep)'
ends
expect "exit code after an agent and its helpers were killed" "$code" 125
expect_in "the report" "$err" "host h2 was lost after "
nothing_left h1 h2

# Processes of a host are killed while its ranks are being ended. The ranks ignore SIGTERM until there is a file.
for victims in horo-agent job-guard job-sweep "horo-agent job-guard" "horo-agent job-guard job-sweep"; do
  rm -f "$scratch/go"
  empty_output
  horo run -H h1:1,h2:1 --tag off --grace 600 bash -c "trap 'echo asked' TERM; echo rank; until [ -e $scratch/go ]; do sleep 0.02; done" \
    >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  eventually "two ranks" '[ "$(grep -c "^rank" "$scratch/out")" = 2 ]'
  kill -TERM "$job"
  eventually "SIGTERM on all" '[ "$(grep -c asked "$scratch/out")" = 2 ]'
  on h2 bash -c "for name in $victims; do pgrep -x \$name; done | xargs kill -KILL"
  case $victims in
    job-sweep) ;;
    *) eventually "the end of a host whose $victims were killed" '[ -z "$(processes h2 | grep -v sshd)" ]' ;;
  esac
  touch "$scratch/go"
  ends
  expect "exit code after $victims were killed in the grace time" "$code" 143
  nothing_left h1 h2
done

# The launcher is killed while ranks are being ended.
empty_output
horo run -H h1:1,h2:1 --tag off --grace 600 bash -c "trap 'echo asked' TERM; echo rank; while :; do sleep 0.02; done" \
  >"$scratch/out" 2>"$scratch/err" </dev/null &
job=$!
eventually "two ranks" '[ "$(grep -c "^rank" "$scratch/out")" = 2 ]'
kill -TERM "$job"
eventually "SIGTERM on all" '[ "$(grep -c asked "$scratch/out")" = 2 ]'
kill -KILL "$job"
ends
nothing_left h1 h2

# A host vanishes silently. The launcher notices it, and the host ends its own processes.
start --heartbeat-timeout 1
hosts cut h2
ends
expect "exit code of a cut host" "$code" 125
expect_in "the report" "$err" "host h2 was lost after "
expect_in "the report" "$err" "it sent no heartbeat for 1 s (--heartbeat-timeout)"
nothing_left h1 h3
# The ssh server of the cut host does not know that the connection is dead; the agent does.
eventually "the cut host ends its ranks" '[ -z "$(processes h2 | grep -v sshd)" ]'
hosts heal h2
nothing_left h2

# A launcher that is suspended, or held up for a moment, does not lose its job.
start --heartbeat-timeout 1
kill -STOP "$job"
sleep 1.5
kill -CONT "$job"
sleep 0.5
kill -0 "$job" || fail "a launcher that was held up for a moment lost its job: $(cat "$scratch/err")"
kill -TSTP "$job"
sleep 4
kill -CONT "$job"
sleep 0.5
kill -0 "$job" || fail "a suspended launcher lost its job: $(cat "$scratch/err")"
kill -TERM "$job"
ends
expect "exit code" "$code" 143
nothing_left h1 h2 h3
exit 0
