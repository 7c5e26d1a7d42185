#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo tune starts a command under trial settings, online and by restarts, continues a stopped search, and says what it learned.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
rank="$HORO_BIN/../tests/autotune_rank"
few=(--autotune-warmup-samples 0 --autotune-steps-per-sample 3)
cd "$scratch" || exit 1

# field EXPRESSION: a part of the JSON in $out, which is `d` in the expression.
field() { python3 -c "import json, sys; d = json.load(sys.stdin); print($1)" <<<"$out"; }

# Online: the training would run for hours; it is stopped when the search has ended.
try timeout 100 horo tune -np 2 --json "${few[@]}" --autotune-bayes-opt-max-samples 5 -- "$rank" 100000000
expect "exit code" "$code" 0
expect "kind" "$(field 'd["kind"]')" horo
[ "$(field 'len(d["samples"])')" -ge 5 ] || fail "fewer than 5 samples"
expect_in "verdict" "$(field 'd["verdicts"][0]')" "the default"

# A program that ends in the warm-up is started again for each trial.
try timeout 100 horo tune -np 2 --autotune-steps-per-sample 100 --json --budget 60s -- "$rank" 20
expect_in "standard error" "$err" "each trial is a run of its own"
expect "kind" "$(field 'd["kind"]')" trials
expect "unit" "$(field 'd["score_unit"]')" runs/h

# By restarts, in two calls: the second continues with the third trial.
first=(timeout 100 horo tune -np 2 --trials 2 "${few[@]}" --resume state --config-out tuned.yaml --html page.html)
try "${first[@]}" -- "$rank" 100000000
expect "exit code" "$code" 0
expect "trials in the state" "$(grep -c '"stage"' state)" 2
expect_in "standard error" "$err" "trial 2, first points: fusion.threshold="
expect_in "standard output" "$out" "all 2 trials were used before the search ended"
expect_in "config file" "$(cat tuned.yaml)" "# Written by horo tune"
try horo run --config-file tuned.yaml --explain-config
expect "exit code with the config file" "$code" 0
[ -s page.html ] || fail "there is no page"
try "${first[@]}" --trials 4 -- "$rank" 100000000
expect_in "standard error" "$err" "2 trials are known from 'state'"
expect_in "standard error" "$err" "trial 3, "
expect "trials in the state" "$(grep -c '"stage"' state)" 4
# A saved search goes on by restarts without being told to.
try timeout 100 horo tune -np 2 "${few[@]}" --resume state --dry-run -- "$rank" 100000000
expect_in "plan with a saved search" "$out" "trials: by restarts"
try "${first[@]}" -- "$rank" 5
expect "exit code with another command" "$code" 1
expect_in "error" "$err" "the state is of a search for another command"

# Online, in two calls: the second continues with the samples of the first, and the third checks its result.
online=(timeout 200 horo tune -np 2 --online --autotune-warmup-samples 1 --autotune-steps-per-sample 20 --resume online)
try "${online[@]}" --autotune-log-file "$scratch/online.csv" --json -- "$rank" 1000000 "$scratch/online.csv" 6
expect "exit code" "$code" 0
expect_in "notes" "$(field 'd["notes"]')" "the same command with --resume online continues the search"
expect_in "state" "$(cat online)" "horo tuning searches, version 1"
first_score=$(field 'd["samples"][0]["score"]')
try "${online[@]}" --autotune-log-file "$scratch/online.csv" --json -- "$rank" 1000000 "$scratch/online.csv" 6
# Unless the machine's speed has changed by more than a third between the two.
if [ "$(field "0.8 < d['samples'][0]['score'] / $first_score < 1.25")" = True ]; then
  expect_in "samples of the second call" "$out" '"stage": "earlier job"'
fi
try "${online[@]}" --autotune-memory "$scratch" -- "$rank" 5
expect "exit code with two memories" "$code" 2
expect_in "error" "$err" "--resume and --autotune-memory exclude each other"
try "${online[@]}" -- "$rank" 5
expect "exit code with another command" "$code" 1
expect_in "error" "$err" "the state is of a search for another command"
try timeout 100 horo tune -np 2 --restart --resume online -- "$rank" 5
expect "exit code by restarts" "$code" 1
expect_in "error" "$err" "the state is of a search online, which restarts cannot continue"
try timeout 100 horo tune -np 2 --online --resume state -- "$rank" 5
expect "exit code of a state by restarts" "$code" 1
expect_in "error" "$err" "the state is of a search by restarts, which --online cannot continue"
[ -z "$(find "$scratch" -maxdepth 1 -name 'horo-tune-*')" ] || fail "a folder is left"

# Variables of other libraries, for a command that does not use Horo's runtime.
cat >space.yaml <<YAML
variables:
  TUNE_MODE: [~, fast, slow]
YAML
try timeout 100 horo tune -np 2 --space space.yaml --fusion-threshold 1MiB --cycle-time 0 --trials 4 --json -- \
  sh -c "echo \"\${TUNE_MODE-none}\" >>'$scratch/modes'"
expect "exit code" "$code" 0
expect "columns" "$(field '[c["name"] for c in d["columns"]]')" "['TUNE_MODE']"
expect "modes that ranks saw" "$(sort -u modes | tr '\n' ' ')" "fast none slow "
