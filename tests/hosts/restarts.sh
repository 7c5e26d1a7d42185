#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --max-restarts over hosts: after what a host or an agent did, without the hosts that are lost; never after what the
# program or its user did.
# shellcheck disable=SC2016,SC2317 # The ranks expand it, not this script; `eventually` calls what is in text.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 4
all=(h1 h2 h3 h4)

# Each rank says which attempt it is of and where; the ranks of the first wait.
ranks='echo "$HORO_RESTART_COUNT $(hostname)"; [ "$HORO_RESTART_COUNT" != 0 ] || { sleep 1000 & wait; }'

# start COUNT ARGUMENT...: such a job in the background; returns when its COUNT ranks have said so.
start() {
  local count=$1
  shift
  : >"$scratch/out" 2>"$scratch/err"
  horo run --tag off --max-restarts 1 "$@" sh -c "$ranks" >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  eventually "$count ranks: $(<"$scratch/err")" '[ "$(grep -c "^0 " "$scratch/out")" = '"$count"' ]'
}

# ends CODE HOSTS: waits for the job; the second attempt's ranks were on these hosts.
ends() {
  wait "$job"
  code=$?
  err=$(<"$scratch/err")
  expect "exit code ($err)" "$code" "$1"
  expect "hosts of the second attempt ($err)" "$(sed -n 's/^1 //p' "$scratch/out" | sort | tr '\n' ' ')" "$2"
  expect_in "the report" "$err" "horo: starting anew, restart 1 of 1"
}

# A host vanishes: the same number of ranks on those that are left.
start 4 -H h1:2,h2:2,h3:2 -np 4 --heartbeat-timeout 1 --json-report "$scratch/report"
hosts cut h2
ends 0 "h1 h1 h3 h3 "
expect_in "the report" "$err" "host h2 was lost after "
expect_in "the JSON report" "$(<"$scratch/report")" '"restarts": 1'
hosts heal h2
nothing_left "${all[@]}"

# One through which others were reached: these are as good as before.
start 3 -H h1:1,h2:1,h3:1,h4:1 -np 3 --fanout 1 --heartbeat-timeout 1
hosts cut h1
ends 0 "h2 h3 h4 "
expect_in "the report" "$err" "host h1 was lost after "
hosts heal h1
nothing_left "${all[@]}"

# An agent is killed and no other host has room: on all of them again, a little later.
start 4 -H h1:2,h2:2
on h2 pkill -KILL -x horo-agent
ends 0 "h1 h1 h2 h2 "
expect_in "the report" "$err" "host h2 was lost after "
expect_in "the report" "$err" "the hosts that are left have too few slots; trying all again soon"
nothing_left "${all[@]}"

# A host that does not answer from the start.
hosts cut h2
try timeout 60 horo run -H h1:1,h2:1,h3:1 -np 2 --tag off --start-timeout 4 --max-restarts 1 sh -c 'hostname'
expect "exit code ($err)" "$code" 0
expect "hosts of the second attempt" "$(sort <<<"$out" | tr '\n' ' ')" "h1 h3 "
hosts heal h2

# A rank's exit code is the program's, wherever it was, unless it is listed; a program that is not there never is.
fails='[ "$RANK" != 3 ] || [ "$HORO_RESTART_COUNT" != 0 ] || exit 9'
try timeout 60 horo run -H h1:2,h2:2 --max-restarts 5 sh -c "$fails"
expect "exit code of a failed rank" "$code" 9
expect_in "the report" "$err" "horo: not restarted: this is a failure of the program (see --restart-on)"
try timeout 60 horo run -H h1:2,h2:2 --max-restarts 5 --restart-on 9 sh -c "$fails"
expect "exit code of a listed one" "$code" 0
try timeout 60 horo run -H h1:2,h2:2 --max-restarts 5 --restart-on any /nowhere/program
expect "exit code without a program" "$code" 127
expect "attempts without a program" "$(grep -c 'starting anew' <<<"$err")" 0
nothing_left "${all[@]}"
exit 0
