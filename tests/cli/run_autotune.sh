#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --autotune tries settings while a job runs, keeps the best or the default, and says which; the sums stay correct.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
rank="$HORO_BIN/../tests/autotune_rank"
log="$scratch/tuning.csv"
export XDG_STATE_HOME="$scratch/state"
store="$XDG_STATE_HOME/horo/tuning-results"
few=(--autotune-warmup-samples 1 --autotune-steps-per-sample 5 --autotune-bayes-opt-max-samples 5)

# well_formed: the log has a header with Horovod's columns, and each line has as many values.
well_formed() {
  local first
  first=$(head -1 "$log")
  case $first in
    hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,tensor_fusion_threshold,score,*) ;;
    *) fail "the log begins with '$first'" ;;
  esac
  expect "numbers of columns in the log" "$(awk -F, '{ print NF }' "$log" | sort -u | wc -l)" 1
  expect "scores that are no numbers" "$(awk -F, 'NR > 1 && $7 !~ /^[0-9.e+]+$/' "$log")" ""
}

# Two ranks train until the search has ended. Every sum is checked by the ranks.
try timeout 100 horo run -np 2 --autotune --autotune-log-file "$log" --log-level info "${few[@]}" "$rank" 1000000 "$log"
expect "exit code" "$code" 0
expect_in "output" "$out" "settled"
well_formed
[ "$(wc -l <"$log")" -ge 7 ] || fail "the log has only $(wc -l <"$log") lines"
grep -qE 'autotuning: (.* is .* % faster than the default|the default stays after)' <<<"$err" || fail "no line says how the search ended"
tail -1 "$log" | grep -qE ',(challenger won|default stays|default is best),' || fail "the last line does not name the ending"

# The result is kept, and the next job settles after a check of at most three samples, unless the machine's speed has changed.
expect "results kept" "$(tail -1 "$store")" "end 1"
try timeout 100 horo run -np 2 --autotune --autotune-log-file "$log" --log-level debug "${few[@]}" "$rank" 1000000 "$log"
expect "exit code" "$code" 0
expect_in "standard error of the second job" "$err" "autotuning: an earlier job found fusion.threshold="
sed -n 2p "$log" | grep -q ',check,' || fail "the second job does not begin with a check: $(sed -n 2p "$log")"
well_formed

# horo tune shows what is kept, writes it to a file, and forgets it.
try horo tune --list
expect "exit code of --list" "$code" 0
expect_in "list" "$out" "1 result in $store:"
try horo tune --list --json
expect "version in the JSON" "$(python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["version"], len(d["results"]))' <<<"$out")" "1 1"
try horo tune --export "$scratch/kept.json"
expect "what was said" "$out" "1 result written to $scratch/kept.json"
expect "exported results" "$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["results"]))' "$scratch/kept.json")" 1
try horo tune --forget 2
expect "exit code of a wrong number" "$code" 2
expect_in "error of a wrong number" "$err" "'2' must be 'all' or a number that --list shows, and it shows 1 result"
try horo tune --list --forget all
expect "exit code of two requests" "$code" 2
try horo tune --forget 1
expect_in "what was said" "$out" "1 result forgotten: "
try horo tune --list
expect "list of nothing" "$out" "no results are kept in $store"
try horo tune --list --autotune-memory off
expect "exit code without memory" "$code" 2

# A damaged store is put aside, and nothing is kept where that is switched off.
echo damaged >"$store"
try timeout 100 horo run -np 2 --autotune --autotune-log-file "$log" --autotune-memory off "${few[@]}" "$rank" 1000000 "$log"
expect "standard error without memory" "$err" ""
expect "the store without memory" "$(cat "$store")" damaged
try timeout 100 horo run -np 2 --autotune --autotune-log-file "$log" "${few[@]}" "$rank" 1000000 "$log"
expect "exit code" "$code" 0
expect_in "standard error" "$err" "'$store' is damaged: "
expect "results kept" "$(tail -1 "$store")" "end 1"

# A search that its job's end interrupts is continued by the next job, and is over after it.
searches="$XDG_STATE_HOME/horo/tuning-searches"
rm -f "$store"
slow=(--autotune --autotune-log-file "$log" --autotune-warmup-samples 1 --autotune-steps-per-sample 20 --log-level info)
try timeout 100 horo run -np 2 "${slow[@]}" "$rank" 1000000 "$log" 6
expect "exit code" "$code" 0
expect_in "standard error" "$err" "autotuning: the training ended after"
expect "searches kept" "$(tail -1 "$searches")" "end 1"
tried=$(sed -n 2p "$searches" | cut -f4 | tr ';' '\n' | wc -l)
[ "$tried" -ge 5 ] || fail "only $tried samples are kept: $(cat "$searches")"
try timeout 200 horo run -np 2 "${slow[@]}" "$rank" 1000000 "$log"
expect "exit code" "$code" 0
if grep -q "whose search did not end, do not count" <<<"$err"; then
  echo "the machine's speed has changed between two jobs"
else
  expect_in "standard error" "$err" "autotuning: goes on with the search of an earlier job, which had $tried samples"
  expect "samples of the earlier job in the log" "$(grep -c ',earlier job,' "$log")" "$tried"
fi
well_formed
expect "searches kept" "$(tail -1 "$searches")" "end 0"
expect "results kept" "$(tail -1 "$store")" "end 1"
rm "$store"
try timeout 100 horo run -np 2 "${slow[@]}" "$rank" 1000000 "$log" 6
try horo tune --forget all
expect "what was said" "$out" "0 results and 1 unfinished search forgotten"

# By Horovod's names.
try timeout 100 env HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_LOG="$log" horo run -np 2 "${few[@]}" "$rank" 1000000 "$log"
expect "exit code" "$code" 0
expect "standard error at the default level" "$err" ""
well_formed

# A training that ends in the warm-up keeps the default, and says so.
try timeout 60 horo run -np 2 --autotune --autotune-log-file "$log" --log-level info "$rank" 10
expect "exit code" "$code" 0
expect_in "standard error" "$err" "autotuning: the training ended during the warm-up"
well_formed
expect "lines of the log" "$(wc -l <"$log")" 2
tail -1 "$log" | grep -q ',ended in warm-up,' || fail "the last line does not say that the training ended in the warm-up"

# Without tensors there is nothing to measure; with one, there is.
try timeout 60 horo run -np 2 --autotune --autotune-log-file "$log" --log-level info "$rank" 0
expect "exit code without tensors" "$code" 0
expect_in "standard error without tensors" "$err" "autotuning: the training ended during the warm-up"
try timeout 100 horo run -np 2 --autotune --autotune-log-file "$log" --log-level info "${few[@]}" "$rank" 1000000 "$log" 1000000 1
expect "exit code with one tensor" "$code" 0
expect_in "output with one tensor" "$out" "settled"
well_formed

# Nothing can change: one rank, or every value is set.
try timeout 60 horo run -np 1 --autotune --log-level info "$rank" 10
expect_in "standard error of one rank" "$err" "autotuning: there is nothing to tune: the job has one rank"
try timeout 60 horo run -np 2 --autotune --log-level info --fusion-threshold 1MiB --cycle-time 0 --wake-delay 50us "$rank" 10
expect_in "standard error with all set" "$err" "autotuning: there is nothing to tune: fusion.threshold, cycle.time and wake.delay are set"

# A log that cannot be written is a warning; the job runs.
try timeout 60 horo run -np 2 --autotune --autotune-log-file "$scratch/none/tuning.csv" "$rank" 10
expect "exit code" "$code" 0
expect_in "standard error" "$err" "there will be no log: opening the autotuning log file '$scratch/none/tuning.csv'"
mkfifo "$scratch/pipe"
try timeout 60 horo run -np 2 --autotune --autotune-log-file "$scratch/pipe" "$rank" 10
expect "exit code with a pipe that nothing reads" "$code" 0
expect_in "standard error" "$err" "the autotuning log file '$scratch/pipe' is a pipe that nothing reads"
