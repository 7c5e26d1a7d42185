#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --max-restarts over hosts: a job is restarted after failures of a host or an agent, without the lost hosts, and never after
# failures of the program or actions of the user.
# shellcheck disable=SC2016,SC2317 # The ranks expand it, not this script; `eventually` calls functions by name.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 4
all=(h1 h2 h3 h4)

# Each rank prints its attempt and its host. The ranks of the first attempt wait.
ranks='echo "$HORO_RESTART_COUNT $(hostname)"; [ "$HORO_RESTART_COUNT" != 0 ] || { sleep 1000 & wait; }'

# start COUNT ARGUMENT...: starts such a job in the background and returns when its COUNT ranks have printed.
start() {
  local count=$1
  shift
  : >"$scratch/out" 2>"$scratch/err"
  horo run --tag off --max-restarts 1 "$@" sh -c "$ranks" >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  eventually "$count ranks: $(<"$scratch/err")" '[ "$(grep -c "^0 " "$scratch/out")" = '"$count"' ]'
}

# ends CODE HOSTS: waits for the job; the ranks of the second attempt ran on HOSTS.
ends() {
  wait "$job"
  code=$?
  err=$(<"$scratch/err")
  expect "exit code ($err)" "$code" "$1"
  expect "hosts of the second attempt ($err)" "$(sed -n 's/^1 //p' "$scratch/out" | sort | tr '\n' ' ')" "$2"
  expect_in "the report" "$err" "horo: restarting the job, restart 1 of 1"
}

# A host vanishes: the same number of ranks runs on the remaining hosts.
start 4 -H h1:2,h2:2,h3:2 -np 4 --heartbeat-timeout 1 --json-report "$scratch/report"
hosts cut h2
ends 0 "h1 h1 h3 h3 "
expect_in "the report" "$err" "host h2 was lost after "
expect_in "the JSON report" "$(<"$scratch/report")" '"restarts": 1'
hosts heal h2
nothing_left "${all[@]}"

# The lost host was used to reach others. Those are used again.
start 3 -H h1:1,h2:1,h3:1,h4:1 -np 3 --fanout 1 --heartbeat-timeout 1
hosts cut h1
ends 0 "h2 h3 h4 "
expect_in "the report" "$err" "host h1 was lost after "
hosts heal h1
nothing_left "${all[@]}"

# An agent is killed and the other hosts have no room: the second attempt uses all hosts again, a little later.
start 4 -H h1:2,h2:2
on h2 pkill -KILL -x horo-agent
ends 0 "h1 h1 h2 h2 "
expect_in "the report" "$err" "host h2 was lost after "
expect_in "the report" "$err" "the remaining hosts have too few slots; all hosts will be tried again soon"
nothing_left "${all[@]}"

# A host does not answer from the start.
hosts cut h2
try timeout 60 horo run -H h1:1,h2:1,h3:1 -np 2 --tag off --start-timeout 4 --max-restarts 1 sh -c 'hostname'
expect "exit code ($err)" "$code" 0
expect "hosts of the second attempt" "$(sort <<<"$out" | tr '\n' ' ')" "h1 h3 "
hosts heal h2

# A restart on the same hosts logs in nowhere: the agents stay. No process of the first attempt is left when the second begins.
logins() { grep -c 'Accepted publickey' "/run/horo-hosts/$1.log"; }
agents_of() { sed -n "s/^$1 agent //p" "$scratch/out" | sort | tr '\n' ' '; }
export scratch
stays='echo "$HORO_RESTART_COUNT agent $(hostname) $PPID"
  if [ "$HORO_RESTART_COUNT" = 0 ]; then
    trap "" TERM
    setsid sleep 4711 &
    touch "$scratch/spoke.$RANK"
    until [ "$RANK" = 0 ] && [ -e "$scratch/spoke.1" ] && [ -e "$scratch/spoke.2" ]; do sleep 0.1; done
    exit 9
  fi
  ! pgrep -x sleep || echo "a process of the attempt before is left"'
for fanout in 32 1; do
  rm -f "$scratch"/spoke.*
  h1=$(logins h1) h2=$(logins h2) h3=$(logins h3)
  try timeout 60 horo run -H h1:1,h2:1,h3:1 --tag off --verbose --fanout "$fanout" --grace 0.5s --max-restarts 1 --restart-on 9 \
    sh -c "$stays"
  expect "exit code ($err)" "$code" 0
  expect "logins at h1 with --fanout $fanout" "$(logins h1)" $((h1 + 1))
  expect "logins at h2 with --fanout $fanout" "$(logins h2)" $((h2 + 1))
  expect "logins at h3 with --fanout $fanout" "$(logins h3)" $((h3 + 1))
  expect "agents of the first attempt ($err)" "$(agents_of 0 | wc -w)" 6
  expect "agents of the second attempt ($err)" "$(agents_of 1)" "$(agents_of 0)"
  expect "reports of what is left" "$(grep -c 'is left' "$scratch/out")" 0
  expect_in "verbose output" "$err" "3 of 3 agents are those of the attempt before"
  nothing_left "${all[@]}"
done

# One host is lost: the agent of the other one stays.
h1=$(logins h1) h3=$(logins h3)
start 4 -H h1:2,h2:2,h3:2 -np 4 --verbose
on h2 pkill -KILL -x horo-agent
ends 0 "h1 h1 h3 h3 "
expect "logins at h1" "$(logins h1)" $((h1 + 1))
expect "logins at h3, which had no ranks before" "$(logins h3)" $((h3 + 1))
expect_in "verbose output" "$err" "1 of 2 agents are those of the attempt before"
nothing_left "${all[@]}"

# pause OPTION...: starts a job on h1 and h2 in the background and returns in the pause before its fourth attempt, which is
# three seconds long.
pause() {
  : >"$scratch/out"
  : >"$scratch/err"
  rm -f "$scratch"/spoke.*
  horo run -H h1:1,h2:1 --tag off --max-restarts 3 --restart-on 9 "$@" sh -c '
    echo "$HORO_RESTART_COUNT agent $(hostname) $PPID"
    [ "$HORO_RESTART_COUNT" != 3 ] || exit 0
    [ "$RANK" = 1 ] || { touch "$scratch/spoke.$HORO_RESTART_COUNT"; exec sleep 100; }
    until [ -e "$scratch/spoke.$HORO_RESTART_COUNT" ]; do sleep 0.02; done
    exit 9' >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  eventually "the pause: $(<"$scratch/err")" '[ "$(grep -c "restarting the job, restart" "$scratch/err")" = 3 ]'
  # Seen from here, because this is quicker than to ask each host.
  expect "agents that wait in the pause" "$(pgrep -cx horo-agent)" 2
}

# An agent is killed in the pause: another one takes its place, and the attempt does not fail.
pause
on h2 pkill -KILL -x horo-agent
wait "$job"
expect "exit code after an agent was killed in the pause ($(<"$scratch/err"))" $? 0
expect "restarts" "$(grep -c 'restarting the job, restart' "$scratch/err")" 3
expect "agent of h1" "$(agents_of 3 | cut -d' ' -f1,2)" "$(agents_of 2 | cut -d' ' -f1,2)"
[ "$(agents_of 3)" != "$(agents_of 2)" ] || fail "the agent of h2 was not killed"
nothing_left "${all[@]}"

# A host vanishes in the pause: the attempt that begins does not get its ranks started.
pause --heartbeat-timeout 1 --start-timeout 8
hosts cut h2
wait "$job"
code=$?
expect "exit code after a host vanished in the pause ($(<"$scratch/err"))" "$code" 124
hosts heal h2
nothing_left "${all[@]}"

# The launcher is killed, or told to end, in the pause: no agent waits on.
for signal in KILL TERM; do
  pause
  kill -"$signal" "$job"
  wait "$job"
  code=$?
  [ $signal = KILL ] || expect "exit code after SIGTERM in the pause ($(<"$scratch/err"))" "$code" 143
  nothing_left "${all[@]}"
done

# A rank's exit code does not lead to a restart unless the code is listed. A program that does not exist is never restarted.
fails='[ "$RANK" != 3 ] || [ "$HORO_RESTART_COUNT" != 0 ] || exit 9'
try timeout 60 horo run -H h1:2,h2:2 --max-restarts 5 sh -c "$fails"
expect "exit code of a failed rank" "$code" 9
expect_in "the report" "$err" "horo: not restarted: this is a failure of the program (see --restart-on)"
try timeout 60 horo run -H h1:2,h2:2 --max-restarts 5 --restart-on 9 sh -c "$fails"
expect "exit code of a listed one" "$code" 0
try timeout 60 horo run -H h1:2,h2:2 --max-restarts 5 --restart-on any /nowhere/program
expect "exit code without a program" "$code" 127
expect "attempts without a program" "$(grep -c 'restarting the job, restart' <<<"$err")" 0
nothing_left "${all[@]}"
exit 0
