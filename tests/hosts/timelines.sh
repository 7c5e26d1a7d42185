#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A failed job writes its timelines to a slow or hanging disk: no host is reported lost, and the job does not wait long.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 2
rank=$HORO_BIN/../tests/stall_rank
failing=("$rank" reduce=first only=1 exit=3 lose=b)

# A file on a FIFO: writing takes three times as long as a host may be silent.
mkdir "$scratch/slow"
mkfifo "$scratch/slow/rank.3.timeline"
(sleep 3 && cat "$scratch/slow/rank.3.timeline" >"$scratch/read") &
try timeout 60 horo run -H h1:2,h2:2 --heartbeat-timeout 1 --timeline-directory "$scratch/slow" "${failing[@]}"
expect "exit code with a slow disk ($err)" "$code" 3
expect_in "the report" "$err" "timeline of 4 ranks: $scratch/slow"
wait
[ -s "$scratch/read" ] || fail "nothing was written to the slow file"
nothing_left h1 h2

# A disk that hangs: the report says so and is not delayed.
mkdir "$scratch/stuck"
mkfifo "$scratch/stuck/rank.3.timeline"
try timeout 60 horo run -H h1:2,h2:2 --heartbeat-timeout 1 --timeline-directory "$scratch/stuck" "${failing[@]}"
expect "exit code with a stuck disk ($err)" "$code" 3
expect_in "the report" "$err" "timeline of 2 ranks: $scratch/stuck"
expect_in "the report" "$err" "timeline: could not be saved: writing to $scratch/stuck takes longer than 10 s"
nothing_left h1 h2

# A signal ends the waiting, and a killed launcher leaves no process either.
for number in INT KILL; do
  rm -f "$scratch/stuck/rank.2.timeline"
  horo run -H h1:2,h2:2 --timeline-directory "$scratch/stuck" "${failing[@]}" >"$scratch/out" 2>"$scratch/err" &
  job=$!
  eventually "an agent that has written one file and is stuck at the next" '[ -s "$scratch/stuck/rank.2.timeline" ]'
  kill "-$number" "$job"
  wait "$job"
  code=$?
  nothing_left h1 h2
  [ "$number" = KILL ] || expect "exit code after SIGINT" "$code" 3
  [ "$number" = KILL ] || expect_in "the report" "$(<"$scratch/err")" "was cancelled, because"
done
exit 0
