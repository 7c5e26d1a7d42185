#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Signals and floods of output work on several hosts as on one.
# shellcheck disable=SC2016,SC2317 # The ranks expand it, not this script; `eventually` calls functions by name.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 3

# start COMMAND ARGUMENT...: starts a job in the background and waits until its four ranks run; $job is its process id.
start() {
  : >"$scratch/out"
  set -m # Its own process group, as in a terminal: Ctrl-Z does not stop an orphaned process group.
  horo run -H h1:2,h2:2 --tag off "$@" >"$scratch/out" 2>"$scratch/err" </dev/null &
  set +m
  job=$!
  eventually "four ranks" '[ "$(grep -c "^ready" "$scratch/out")" = 4 ]'
}

ends() {
  wait "$job"
  code=$?
  out=$(<"$scratch/out")
  err=$(<"$scratch/err")
}

# stopped HOST COUNT: COUNT ranks of HOST are stopped.
stopped() { [ "$(on "$1" bash -c 'cat /proc/[0-9]*/stat 2>/dev/null' | grep -c '(ranker) T ')" = "$2" ]; }
cp "$(command -v bash)" /var/tmp/ranker

# Ctrl-Z stops the ranks of all hosts, and fg continues them.
start /var/tmp/ranker -c 'echo ready; trap "exit 0" USR2; while :; do sleep 0.05; done'
kill -TSTP "$job"
for host in h1 h2; do eventually "stopped ranks on $host" 'stopped $host 2'; done
eventually "a stopped launcher" 'grep -q "^State:.*T" "/proc/$job/status"'
kill -CONT "$job"
for host in h1 h2; do eventually "ranks that go on, on $host" 'stopped $host 0'; done
kill -USR2 "$job"
ends
expect "exit code after SIGUSR2" "$code" 0

# SIGUSR1, then an end with grace time, then one without.
start bash -c 'trap "echo one" USR1; trap "echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
kill -USR1 "$job"
eventually "SIGUSR1 on all" '[ "$(grep -c one "$scratch/out")" = 4 ]'
kill -HUP "$job"
ends
expect "exit code after SIGHUP" "$code" 129
expect "ranks that had time to end" "$(grep -c saved <<<"$out")" 4
start --grace 50 bash -c 'trap "echo asked" TERM; echo ready; while :; do sleep 0.05; done'
kill -INT "$job"
eventually "SIGTERM on all" '[ "$(grep -c asked "$scratch/out")" = 4 ]'
sleep 0.4 # An earlier signal would count as the same one, passed on by a wrapper.
kill -INT "$job"
ends
expect "exit code after two SIGINT" "$code" 130
nothing_left h1 h2

# The reader pauses: the ranks of all hosts wait, memory stays small, and no line is lost or torn.
timeout 100 horo run -H h1:2,h2:2 --prefix '{rank} ' bash -c 'yes "$RANK ---------------------------------" | head -n 200000; echo "last $RANK"' \
  2>"$scratch/err" | {
  sleep 2
  pid=$(pgrep -x horo-run)
  awk '/^VmRSS/ {print $2}' "/proc/$pid/status" >"$scratch/memory"
  grep -Ec '^([0-3]) (\1 -+|last \1)$' >"$scratch/count"
}
expect "lines" "$(<"$scratch/count")" 800004
[ "$(<"$scratch/memory")" -lt 65536 ] || fail "the launcher holds $(<"$scratch/memory") kB"

# The reader closes the pipe: the ranks end.
timeout 60 horo run -H h1:2,h2:2 yes 2>"$scratch/err" | head -n 1 >"$scratch/out"
code=${PIPESTATUS[0]} err=$(<"$scratch/err")
expect "exit code without a reader" "$code" 141
nothing_left h1 h2

# A rank floods a paused reader, also through two agents in between. No heartbeat is missed, and the output of other ranks is
# delayed by no more than its window.
mkfifo "$scratch/pipe"
for fanout in 32 1; do
  rm -f "$scratch"/go "$scratch"/said.*
  horo run -H h1:1,h2:1,h3:1 --fanout "$fanout" --heartbeat-timeout 1 --prefix '{rank} ' bash -c "
    [ \$RANK != 2 ] || exec yes flood
    until [ -e $scratch/go ]; do sleep 0.1; done
    echo word
    touch $scratch/said.\$RANK
    sleep 1000" >"$scratch/pipe" 2>"$scratch/err" </dev/null &
  job=$!
  exec 3<"$scratch/pipe"
  read -r line <&3
  expect "the flood's first line" "$line" "2 flood"
  sleep 3 # Three heartbeats.
  kill -0 "$job" || fail "a paused reader ended the job: $(<"$scratch/err")"
  touch "$scratch/go"
  eventually "two words" '[ -e $scratch/said.0 ] && [ -e $scratch/said.1 ]'
  expect "words in the next 2 MB" "$(head -c 2000000 <&3 | grep -c word)" 2
  kill -TERM "$job"
  cat <&3 >/dev/null
  exec 3<&-
  ends
  expect "exit code after a flood with --fanout $fanout" "$code" 143
  nothing_left h1 h2 h3
done
exit 0
