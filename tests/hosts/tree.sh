#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Agents are started by other agents: a chain and a tree of four hosts, with failures at every place.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 4
all=(h1 h2 h3 h4)
list=h1:2,h2:2,h3:2,h4:2

# start ARGUMENT...: starts a job in the background and waits until its ranks run; $job is its process id.
start() {
  : >"$scratch/out"
  horo run -H "$list" --tag off "$@" sh -c 'echo "rank $RANK"; sleep 1000 & wait' \
    >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  eventually "eight ranks: $(cat "$scratch/err")" '[ "$(grep -c "^rank" "$scratch/out")" = 8 ]'
}

# ends CODE HEADLINE: waits for the job; within two seconds no process is left on any host.
ends() {
  wait "$job"
  code=$?
  err=$(<"$scratch/err")
  expect "exit code ($err)" "$code" "$1"
  expect_in "the report" "$err" "$2"
  nothing_left "${all[@]}"
}

# clients HOST: the number of connections from HOST to ssh servers.
clients() { on "$1" ss -Htn state established '( dport = :22 )' | wc -l; }

try horo run -H "$list" --fanout 2 --dry-run true
expect_in "the plan" "$out" "tree       agents in 2 levels, at most 1 started from any host"
expect_in "the plan" "$(grep '^host  *h4' <<<"$out")" "by ssh as root to h4, port 22, from host h2"
expect "the plan's JSON" "$(horo run -H "$list" --fanout 1 --dry-run --json true |
  python3 -c 'import json, sys; print([h["from"] for h in json.load(sys.stdin)["hosts"]])')" "[None, 'h1', 'h2', 'h3']"

for fanout in 1 2; do
  try timeout 60 horo run -H "$list" --fanout "$fanout" --tag off sh -c 'echo "$RANK $(hostname) ${HORO_RENDEZVOUS%:*}"'
  expect "exit code" "$code" 0
  expect "ranks" "$(sort <<<"$out")" "0 h1 10.83.0.254
1 h1 10.83.0.254
2 h2 10.83.0.254
3 h2 10.83.0.254
4 h3 10.83.0.254
5 h3 10.83.0.254
6 h4 10.83.0.254
7 h4 10.83.0.254"
  expect "standard error" "$err" ""
  nothing_left "${all[@]}"

  # Each host has the expected number of connections, with the ssh library and with the ssh program.
  for way in "" "--ssh-program ssh"; do
    # shellcheck disable=SC2086 # words
    start --fanout "$fanout" $way
    if [ "$fanout" = 1 ]; then expected="1 1 1 0"; else expected="1 1 0 0"; fi
    expect "connections ($way)" "$(for host in "${all[@]}"; do clients "$host"; done | xargs)" "$expected"
    expect "connections from here" "$(ss -Htn state established '( dport = :22 )' | wc -l)" "$fanout"
    kill -USR1 "$job" # The launcher passes it on to every rank, and it ends them.
    ends 138 "failed first: killed by signal 10 (SIGUSR1)"
  done

  # Much output from the last host arrives in order, and so does standard input; exit codes are passed on.
  timeout 100 horo run -H "$list" --fanout "$fanout" --tag off sh -c '[ "$RANK" != 7 ] || seq 300000' >"$scratch/out"
  cmp "$scratch/out" <(seq 300000) || fail "output was changed on its way"
  timeout 60 horo run -H h4:1,h3:1,h2:1,h1:1 --fanout "$fanout" --stdin rank0 --tag off sh -c '[ "$RANK" != 0 ] || cat' \
    <"$scratch/out" >"$scratch/back"
  cmp "$scratch/out" "$scratch/back" || fail "input was changed on its way"
  try timeout 60 horo run -H "$list" --fanout "$fanout" --tag off sh -c '[ "$RANK" != 6 ] || exit 9; sleep 1000'
  expect "exit code of a failed rank" "$code" 9
  expect_in "the report" "$err" "rank 6 on h4 failed first: exit code 9"
  nothing_left "${all[@]}"

  # The ranks of a host in between end long before those of the hosts behind it.
  try timeout 60 horo run -H "$list" --fanout "$fanout" --tag off sh -c '[ "$RANK" -lt 6 ] || { sleep 1; echo "$RANK"; }'
  expect "exit code" "$code" 0
  expect "who was last" "$(sort <<<"$out" | xargs)" "6 7"

  # A rank is killed; the launcher; an agent in between, or both halves of it; its connection.
  start --fanout "$fanout"
  on h4 bash -c 'kill -KILL "$(pgrep -f "echo .rank" | head -n 1)"'
  ends 137 "on h4 failed first: killed by signal 9 (SIGKILL)"
  start --fanout "$fanout"
  kill -KILL "$job"
  ends 137 ""
  start --fanout "$fanout"
  on h1 pkill -KILL -x horo-agent
  ends 125 "host h1 was lost after "
  expect_in "the report" "$err" "other hosts were reached through it"
  start --fanout "$fanout"
  on h2 bash -c 'kill -KILL $(pgrep -x horo-agent) $(pgrep -x job-guard)'
  ends 125 "host h2 was lost after "
  start --fanout "$fanout" --ssh-program ssh
  on h2 bash -c 'kill -KILL $(pgrep -x horo-agent) $(pgrep -x job-guard)'
  ends 125 "host h2 was lost after "
  start --fanout "$fanout"
  on h2 bash -c 'kill -KILL "$(pgrep -f "sshd: root@notty" | head -n 1)"'
  ends 125 "host h2 was lost after "
  # An agent that is stopped is reported as lost, and does not stay.
  start --fanout "$fanout" --heartbeat-timeout 1
  on h2 pkill -STOP -x horo-agent
  ends 125 "host h2 was lost after "

  # A host in between is cut off: the report names it, and the other hosts end at once.
  start --fanout "$fanout" --heartbeat-timeout 1
  hosts cut h1
  begin=${EPOCHREALTIME//[.,]/}
  wait "$job"
  expect "exit code of a cut host" "$?" 125
  expect_in "the report" "$(<"$scratch/err")" "host h1 was lost after "
  # The ssh servers of the hosts behind it do not know that the connection is dead; the agents do.
  for host in h4 h3 h2; do eventually "the end on $host" '[ -z "$(processes $host | grep -v sshd)" ]'; done
  echo "cut host with --fanout $fanout: $(((${EPOCHREALTIME//[.,]/} - begin) / 1000)) ms until the other hosts had ended"
  eventually "the end on the cut host" '[ -z "$(processes h1 | grep -v sshd)" ]'
  hosts heal h1
  nothing_left "${all[@]}"

  # A suspended launcher keeps its job.
  start --fanout "$fanout" --heartbeat-timeout 1
  kill -TSTP "$job"
  sleep 4
  kill -CONT "$job"
  sleep 0.5
  kill -0 "$job" || fail "a suspended launcher lost its job: $(cat "$scratch/err")"
  kill -TERM "$job"
  ends 143 "stopped by signal 15"
done

# A host without a key cannot log in to others; the launcher starts those hosts itself.
on h1 mount --bind /dev/null /run/home/.ssh/id_ed25519
start --fanout 1
expect "connections from a host without key" "$(clients h1)" 0
expect "connections from the next" "$(clients h2)" 1
expect "connections from here" "$(ss -Htn state established '( dport = :22 )' | wc -l)" 2
kill -TERM "$job"
ends 143 "stopped by signal 15"
on h1 umount /run/home/.ssh/id_ed25519

# The last host does not answer: the error names the step that each host had reached at the timeout.
hosts cut h4
try timeout 60 horo run -H "$list" --fanout 1 --start-timeout 6 sleep 1000
expect "exit code without an answer" "$code" 124
expect_in "the error without an answer" "$err" "were not started within --start-timeout 6.00 s; host h4: connecting to 10.83.0.4:22"
hosts heal h4
nothing_left "${all[@]}"
exit 0
