#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo tune --log reads logs of Horovod and of Horo, as text and JSON, and says what is wrong with others.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
log="$HORO_SOURCE/tests/data/horovod-autotune.csv"

try horo tune --log "$log"
expect "exit code" "$code" 0
expect "standard error" "$err" ""
expect_in "first line" "$(head -1 <<<"$out")" "log of Horovod's autotuner, 44 samples"
expect_in "verdicts" "$out" "is probably luck"
expect_in "curve" "$out" "best so far, from 332.1 to 891.6 MB/s"
expect_in "table" "$out" "fusion threshold (MiB)   cycle time (ms)"

try horo tune --log "$log" --json
expect "exit code" "$code" 0
expect "samples in the JSON" "$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)["samples"]))' <<<"$out")" 44

# Cut in the middle of a line: the whole lines are used.
head -c 500 "$log" >"$scratch/cut.csv"
try horo tune --log "$scratch/cut.csv"
expect "exit code of a cut log" "$code" 0
expect_in "warning" "$err" "cut.csv:$(wc -l <"$scratch/cut.csv" | awk '{ print $1 + 1 }'): the line has no end"

# Bad logs end with exit code 1 and one line.
bad() {
  local message=$1
  shift
  try horo tune --log "$@"
  expect "exit code of $*" "$code" 1
  expect "standard output of $*" "$out" ""
  expect "number of lines of $*" "$(wc -l <"$scratch/err")" 1
  expect_in "error of $*" "$err" "$message"
}
bad "autotune log '$scratch/none': opening it: No such file" "$scratch/none"
bad "autotune log '$scratch': reading it: Is a directory" "$scratch"
: >"$scratch/empty.csv"
bad "the autotune log '$scratch/empty.csv' is empty" "$scratch/empty.csv"
bad "is no autotune log that this version of Horo can read" "$HORO_SOURCE/README.md"
cp "$log" "$scratch/own.csv"
bad "--html would overwrite the log" "$scratch/own.csv" --html "$scratch/own.csv"
cmp -s "$log" "$scratch/own.csv" || fail "the log was overwritten"

refused "unknown option '--lgo'" horo tune --lgo x
try horo tune --help
expect "exit code of --help" "$code" 0
expect_in "help" "$out" "--log FILE"

# The flags to keep are those of a setting that has won in Horo; a log of Horovod gives none.
cat >"$scratch/won.csv" <<'CSV'
hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,tensor_fusion_threshold,score,score_unit,standard_error,steps,wake_delay_us,state,gain_percent,gain_error_percent,chance_percent
0,0,0,1,0,64,100,bytes/us,2,10,50,first points,,,
0,0,0,1,0.5,8,150,bytes/us,2,10,50,duel,,,
0,0,0,1,0.5,8,150,bytes/us,2,10,50,challenger won,50,1,0.2
CSV
try horo tune --log "$scratch/won.csv"
expect_in "advice" "$out" "horo run --fusion-threshold=8MiB --cycle-time=500us --wake-delay=50us ..."
# With the limit of small messages, which only jobs on several hosts tune.
sed -e '1s/wake_delay_us,/&small_message_kib,/' -e '2s/,first/,64,first/' -e '3,4s/,50,/,50,1024,/' "$scratch/won.csv" >"$scratch/hosts.csv"
try horo tune --log "$scratch/hosts.csv"
expect_in "advice" "$out" "horo run --fusion-threshold=8MiB --cycle-time=500us --wake-delay=50us --small-message=1MiB ..."
try horo tune --log "$log"
case $out in *"to keep it"*) fail "a log of Horovod gives flags of Horo" ;; esac
