#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A rank keeps others waiting: one line names the tensor, the waiting time, the missing rank and what that rank does instead.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
rank=$HORO_BIN/../tests/stall_rank
export scratch rank

# watch WORDS DO...: runs the job $job, waits until it prints WORDS, runs DO, and waits for the end. Sets $err and $code.
watch() {
  local words=$1
  shift
  rm -f "$scratch/err" # It may be left from the job before.
  timeout 60 horo run "${job[@]}" >"$scratch/out" 2>"$scratch/err" </dev/null &
  local launcher=$!
  until grep -qsE "$words" "$scratch/err"; do
    kill -0 "$launcher" 2>/dev/null || break
    sleep 0.02
  done
  "$@"
  wait "$launcher"
  code=$?
  err=$(cat "$scratch/err")
  out=$(cat "$scratch/out")
  grep -qE "$words" "$scratch/err" || fail "the job printed nothing that matches '$words'"
  rm -f "$scratch/go"
}

pid_of() { cat "$scratch/pid$1"; }

go_on() { kill -CONT "$(pid_of "$1")"; }

# keep_pid WORD...: starts a rank that first writes its process id to a file.
keep_pid=(bash -c 'echo $$ >"$scratch/pid$RANK"; exec "$rank" "$@"' rank)
say='horo: stall: warning: '
age='[0-9.]+' # A check may be late on a busy machine.
ago="which it last called $age s ago"

# A rank is stopped between two operations.
job=(-np 3 --stall-warning-time 0.3 "${keep_pid[@]}" reduce=a only=1 stop reduce=a)
watch "${say}tensor 'a' has waited $age s for rank 1 \(stopped, by SIGSTOP or Ctrl-Z\)" go_on 1
expect "exit code when the stopped rank goes on" "$code" 0
expect "lines that two ranks have said" "$(sed 's/^\[[0-9]*\] //' "$scratch/err" | grep 'has waited' | sort | uniq -d)" ""

# A rank sleeps, or is busy, outside libhoro; it has declared the tensor or has never declared it.
job=(-np 2 --stall-warning-time 0.3 "$rank" reduce=a only=1 "until=$scratch/go" reduce=b)
watch "tensor 'b' has waited $age s for rank 1 \(asleep outside libhoro, $ago; never declared it\)" touch "$scratch/go"
expect "exit code" "$code" 0
job=(-np 2 --stall-warning-time 0.3 "$rank" reduce=a only=1 "spin=$scratch/go" reduce=a)
watch "tensor 'a' has waited $age s for rank 1 \(busy outside libhoro, $ago\)" touch "$scratch/go"
expect "exit code" "$code" 0

# No rank blocks in a wait: the operations are submitted and then left alone, or polled.
for way in "until=$scratch/go" poll; do
  job=(-np 2 --stall-warning-time 0.3 "$rank" only=1 "until=$scratch/go" begin=a begin=b "$way" finish)
  watch "tensors 'a', 'b' have waited $age s for rank 1 \(asleep outside libhoro, not called since horo_init; never declared them\)" \
    touch "$scratch/go"
  expect "exit code" "$code" 0
done

# Two ranks wait for different tensors. This would never end; the shutdown time ends it on both.
job=(-np 2 --stall-warning-time 0.2 --stall-shutdown-time 0.7 "$rank" only=0 lose=x only=1 lose=y)
watch "tensor 'x' has waited $age s for rank 1 \(waits for tensor 'y'; never declared it\)" true
expect_in "the other half" "$err" "for rank 0 (waits for tensor 'x'; never declared it)"
expect "exit code" "$code" 7
for r in 0 1; do
  expect_in "what rank $r gets" "$out" "rank $r: peer_lost: stalled for longer than the 0.7 s of stall.shutdown.time: tensor '"
done

# A stopped rank cannot release its peers' memory, so it is killed to let the peers complete.
job=(-np 3 --stall-warning-time 0.2 --stall-shutdown-time 0.5 "$rank" only=1 stop lose=a)
watch "stall: error: stalled for longer than .*: tensor 'a' has waited $age s for rank 1 \(stopped" true
for r in 0 2; do expect_in "what rank $r gets" "$out" "rank $r: peer_lost: stalled for longer than"; done
expect "report" "$(grep -cE '^(horo:|) *rank 1 .*killed by signal 9 \(SIGKILL\)' "$scratch/err")" 1

# A rank leaves in good order before the others check: they fail at once instead of waiting.
for _ in 1 2 3; do
  try timeout 60 horo run -np 2 "$rank" reduce=a only=0 lose=b
  expect_in "what the other rank gets" "$out$err" "rank 0: shut_down: rank 1 has left the job, and nothing can complete without it: its program ended or called shutdown. Give all ranks the same number of steps, or let those that have fewer call join()"
done

# A rank is stopped in the middle of an operation.
words=(large=big "touch=$scratch/middle")
for _ in $(seq 20); do words+=(large=big); done
(
  until [ -e "$scratch/middle" ]; do sleep 0.02; done
  kill -STOP "$(pid_of 1)"
) &
job=(-np 2 --stall-warning-time 0.3 "${keep_pid[@]}" "${words[@]}")
watch "tensor 'big' has (not moved for $age s and needs the share of|waited $age s for) rank 1 \(stopped, by SIGSTOP" go_on 1
expect "exit code when the stopped rank goes on" "$code" 0

# Each process set is checked on its own, and the message names the set.
job=(-np 3 --stall-warning-time 0.3 "$rank" "set=0,1" only=1 "until=$scratch/go" only=2 "until=$scratch/go" only=0 reduce=a only=1 reduce=a)
watch "process set 1: tensor 'a' has waited $age s for rank 1 \(asleep outside" touch "$scratch/go"
expect "exit code" "$code" 0

# The check can be turned off, also by Horovod's names.
export HOROVOD_STALL_CHECK_TIME_SECONDS=0
job=(-np 2 --no-stall-check "$rank" only=1 "until=$scratch/go" reduce=a)
(sleep 0.5 && touch "$scratch/go") &
try timeout 60 horo run "${job[@]}"
expect "exit code" "$code" 0
expect "what is said without the check" "$err" ""
rm -f "$scratch/go"
job=(-np 2 "$rank" only=1 "until=$scratch/go" reduce=a)
watch "tensor 'a' has waited $age s for rank 1" touch "$scratch/go"
expect "exit code" "$code" 0
