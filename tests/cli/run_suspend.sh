#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ctrl-Z stops the whole job and fg continues it. No rank is reported as late or lost.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# until_so COMMAND...: repeats COMMAND until it succeeds.
until_so() {
  for ((i = 0; i < 300; i++)); do
    "$@" && return
    sleep 0.05
  done
  fail "this never succeeded: $* ($(cat "$scratch/out" "$scratch/err"))"
}

# state_is STATE PID...: all these processes are in STATE.
state_is() {
  local pid
  for pid in "${@:2}"; do [ "$(sed 's/.*) \(.\).*/\1/' "/proc/$pid/stat")" = "$1" ] || return 1; done
}

ranks_said() { [ "$(grep -c "^$1" "$scratch/out")" -ge 2 ]; }

# begin COMMAND...: starts COMMAND in the background and waits until both ranks have printed their process ids.
begin() {
  : >"$scratch/out"
  set -m # Its own process group, as in a terminal.
  timeout --foreground 60 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null &
  set +m
  launcher=$!
  until_so ranks_said pid
  mapfile -t ranks < <(sed -n 's/^pid //p' "$scratch/out")
}

begin horo run -np 2 --tag off bash -c 'echo "pid $$"; until [ -e "$0" ]; do sleep 0.02; done; echo on' "$scratch/go"
kill -TSTP -- "-$launcher"
until_so state_is T "${ranks[@]}"
until_so state_is T "$(pgrep -P "$launcher" -x horo-run)"
touch "$scratch/go"
sleep 0.3
expect "ranks that went on" "$(grep -c on "$scratch/out")" 0
kill -CONT -- "-$launcher"
wait "$launcher"
expect "exit code" "$?" 0
expect "ranks that went on" "$(grep -c on "$scratch/out")" 2

# The time in which the whole job was stopped does not count when a rank waits for another to start.
rm "$scratch/go"
export HORO_START_TIMEOUT=3
probe=$HORO_BIN/../tests/horo_probe
begin horo run -np 2 --tag off bash -c 'echo "pid $$"; if [ $RANK = 1 ]; then until [ -e "$0" ]; do sleep 0.02; done; fi; exec "$1"' "$scratch/go" "$probe"
until_so grep -q horo_probe "/proc/${ranks[0]}/comm" "/proc/${ranks[1]}/comm"
sleep 0.2
kill -TSTP -- "-$launcher"
until_so state_is T "${ranks[@]}"
touch "$scratch/go"
sleep 4.5
kill -CONT -- "-$launcher"
wait "$launcher"
expect "exit code of ranks that met late" "$?" 0

# A stopped job ends on request, for example by `kill %1`.
begin horo run -np 2 --tag off bash -c 'trap "echo ended; exit 0" TERM; echo "pid $$"; while :; do sleep 0.02; done'
kill -TSTP -- "-$launcher"
until_so state_is T "${ranks[@]}"
kill -TERM -- "-$launcher"
kill -CONT -- "-$launcher"
wait "$launcher"
expect "exit code after SIGTERM" "$?" 143
expect "ranks that had time to end" "$(grep -c ended "$scratch/out")" 2
