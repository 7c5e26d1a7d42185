#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo run --explain-config prints every knob, its value and the origin of the value.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# line_of KEY: the value and the origin in the line of KEY.
line_of() { printf '%s\n' "$out" | sed -n "s/^$1  *//p" | tr -s ' '; }

try horo run --explain-config
expect "exit code" "$code" 0
expect "standard error" "$err" ""
expect "number of lines" "$(printf '%s\n' "$out" | wc -l)" "$(grep -c '^| [^K]' "$HORO_SOURCE/docs/reference/knobs.md")"
expect "fusion.threshold" "$(line_of fusion.threshold)" "64MiB default"

cat >"$scratch/job.yaml" <<'YAML'
fusion:
  threshold: 8MiB
params:
  cycle_time_ms: 2
stall_check:
  enabled: false
grace: 1s
YAML
HOROVOD_CYCLE_TIME=4 HORO_GRACE=3s HOROVOD_LOG_HIDE_TIME=0 try horo run --config-file "$scratch/job.yaml" \
  --explain-config --grace 7 --fusion-threshold=16M
expect "exit code" "$code" 0
expect "a flag" "$(line_of grace)" "7s flag --grace"
expect "a flag over a file" "$(line_of fusion.threshold)" "16MiB flag --fusion-threshold"
expect "Horovod's variable over a file" "$(line_of cycle.time)" "4ms environment HOROVOD_CYCLE_TIME"
expect "an inverted variable" "$(line_of log.timestamp)" "true environment HOROVOD_LOG_HIDE_TIME"
expect "a file" "$(line_of stall.check)" "false config $scratch/job.yaml:6:12"

HOROVOD_CYCLE_TIME=4 HORO_CONFIG_FILE="$scratch/job.yaml" try horo run --explain-config --horovod
expect "a file as in horovodrun" "$(line_of cycle.time)" "2ms config $scratch/job.yaml:4:18"

# Horovod writes 0 for "no value".
for zero in HOROVOD_START_TIMEOUT=0 HORO_START_TIMEOUT=0; do
  try env "$zero" horo run --explain-config
  grep -q "^start.timeout *30s " <<<"$out" || fail "$zero does not mean the default"
done
try horo run --start-timeout 0 --cache-capacity 0 --explain-config
grep -q "^start.timeout *30s " <<<"$out" || fail "--start-timeout 0 does not mean the default"
grep -q "^cache.capacity *8192 " <<<"$out" || fail "--cache-capacity 0 does not mean the default"

# Settings that have no effect are named on standard error, as in a job.
HOROVOD_FUSION_TRESHOLD=1 try horo run --explain-config --no-hierarchical-allgather --mpi-args=-x --json
expect "exit code" "$code" 0
expect_in "warning" "$err" "hierarchical.allgather (flag --no-hierarchical-allgather) has no effect"
expect_in "warning" "$err" "mpi.args (flag --mpi-args) has no effect: it is only for --mpi and --jsrun"
expect_in "warning" "$err" "did you mean 'HOROVOD_FUSION_THRESHOLD'?"
expect "number of warnings" "$(wc -l <"$scratch/err")" 3

HORO_SHM_RING=16 try horo run --explain-config --json
expect "exit code" "$code" 0
printf '%s' "$out" | python3 -c '
import json, sys
knobs = {knob["key"]: knob for knob in json.load(sys.stdin)["knobs"]}
ring = {"key": "shm.ring", "value": "16", "origin": "environment", "from": "HORO_SHM_RING"}
assert knobs["shm.ring"] == ring, knobs["shm.ring"]
assert knobs["cycle.time"]["origin"] == "default" and knobs["cycle.time"]["from"] is None
' || fail "the JSON differs from the table"
