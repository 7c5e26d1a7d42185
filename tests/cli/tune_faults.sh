#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo tune under trouble: failing commands, nothing to tune, a short budget, Ctrl-C.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
rank="$HORO_BIN/../tests/autotune_rank"
few=(--autotune-warmup-samples 0 --autotune-steps-per-sample 3)
cd "$scratch" || exit 1
printf 'variables:\n  TUNE_MODE: [~, fast, slow]\n' >space.yaml

# A command that fails: the search stops, with the command's own error.
try timeout 100 horo tune -np 2 --restart --failures 2 -- sh -c 'echo "no data set" >&2; exit 7'
expect "exit code" "$code" 1
expect_in "standard error" "$err" "stopped after 2 failures in a row: exit code 7"
expect_in "standard error" "$err" "no data set"
expect_in "standard output" "$out" "none of the 2 samples has a score"
try timeout 100 horo tune -np 2 -- sh -c 'echo "no data set" >&2; exit 7'
expect "exit code online" "$code" 1
expect_in "standard error online" "$err" "no data set"

# A command that fails with one setting only: that trial is marked, and the others are compared.
# shellcheck disable=SC2016 # the inner shell expands it
try timeout 100 horo tune -np 2 --space space.yaml --fusion-threshold 1MiB --cycle-time 0 --trials 4 --json -- \
  sh -c '[ "${TUNE_MODE-}" != slow ] || { echo "there is no mode slow" >&2; exit 3; }'
expect "exit code with one failing setting" "$code" 0
expect "settings that failed, and trials" \
  "$(python3 -c 'import json, sys; d = json.load(sys.stdin); print([s["values"] for s in d["settings"] if s["failures"]], len(d["samples"]))' <<<"$out")" \
  "[['slow']] 4"
expect_in "standard error with one failing setting" "$err" "failed: exit code 3"

# A request that leaves nothing to tune is refused at once.
refused "there is nothing to tune: fusion.threshold by flag --fusion-threshold, cycle.time by environment HORO_CYCLE_TIME" \
  env HORO_CYCLE_TIME=1ms horo tune -np 2 --restart --fusion-threshold 1MiB -- true
# Between hosts the small message is free, too.
most=(--fusion-threshold 1MiB --cycle-time 0 --wake-delay 50us)
refused "wake.delay by flag --wake-delay; leave one of them out" horo tune -np 2 "${most[@]}" -- true
refused "small.message by flag --small-message; leave one" horo tune -H a:1,b:1 "${most[@]}" --small-message 64KiB -- true
try horo tune -H a:1,b:1 "${most[@]}" --dry-run -- train
expect "exit code when only the small message is free" "$code" 0
expect_in "plan when only the small message is free" "$out" "the default: small.message=64KiB"
refused "there is nothing to tune: a job of one rank reduces nothing" horo tune -np 1 -- true
refused "no command to run is given" horo tune -np 2
refused "space.yml': opening it: No such file" horo tune -np 2 --space "$scratch/space.yml" -- true
try timeout 100 horo tune -np 2 --restart --budget 1s -- sleep 1000
expect "exit code of a short budget" "$code" 0
expect_in "standard output" "$out" "the budget of 1.0 s is too short for one trial"
expect_in "standard output" "$out" "the budget ended before anything was measured, so the default stays"
try timeout 100 horo tune -np 2 --online --budget 3s --json --autotune-steps-per-sample 100000 -- "$rank" 100000000
expect "exit code of a short budget online" "$code" 0
expect_in "verdict" "$out" '"the budget ended before anything was measured, so the default stays; allow more with --budget, or lower'
expect_in "who stopped it" "$out" '"stopped_by": "budget"'
expect_in "note" "$out" "the budget was 3.0 s"
try horo tune --dry-run -np 2 --space space.yaml -- train
expect "exit code of --dry-run" "$code" 0
expect_in "plan" "$out" "TUNE_MODE=(unset)"

# A file that could not be written is refused before the first trial; one that cannot be written at the end
# costs no result.
for option in --html --config-out --resume; do
  try timeout 100 horo tune -np 2 --restart --trials 2 $option none/file -- sh -c "echo >>'$scratch/ran'"
  expect "exit code of $option none/file" "$code" 1
  expect_in "error of $option none/file" "$err" "$option: the folder of 'none/file': No such file or directory"
done
[ ! -e ran ] || fail "a trial ran, although its result could not be written"
mkdir page
try timeout 100 horo tune -np 2 --restart --trials 2 --html page --config-out page --resume page/state -- \
  sh -c "mkdir -p '$scratch/page/state/x'"
expect "exit code when files cannot be written" "$code" 1
expect_in "standard output" "$out" "all 2 trials were used before the search ended"
expect_in "warning" "$err" "the search is not saved: "

# Ctrl-C stops the job, saves the state, and prints the best so far.
horo tune -np 2 --restart "${few[@]}" --resume stopped --whole-runs -- \
  sh -c "'$rank' 30 && echo >>'$scratch/runs' && if [ \$(wc -l <'$scratch/runs') -gt 4 ]; then exec sleep 31415.9; fi" \
  >out 2>err </dev/null &
tune=$!
touch runs
until [ "$(wc -l <runs)" -gt 4 ]; do
  kill -0 $tune 2>/dev/null || fail "horo tune has ended: $(cat err)"
  sleep 0.05
done
kill -INT $tune
wait $tune
expect "exit code after SIGINT" "$?" 130
expect_in "standard output" "$(cat out)" "you stopped the search"
expect_in "standard output" "$(cat out)" "--resume stopped continues the search"
expect_in "state" "$(cat stopped)" '"horo_tune": 1'
if pgrep -fx 'sleep 31415.9'; then fail "ranks were left behind"; fi
