#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo top shows the GPUs of the job's hosts: their use, and which ranks compute on them. A library stands in for NVIDIA's. A
# library that is missing, fails half-way or never answers is named, and the ranks are shown all the same.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

standin=$HORO_BIN/../tests/horo-nvml-standin.so
rank=$HORO_BIN/../tests/stall_rank

# shellcheck disable=SC2016 # for the rank's shell
timeout 100 horo run -np 2 sh -c '[ "$HORO_RANK" != 0 ] || { echo "$HORO_JOB_ID" >"$1.new" && mv "$1.new" "$1"; }; shift; exec "$@"' \
  sh "$scratch/id" "$rank" reduce=one only=1 "until=$scratch/stop" reduce=gradient >"$scratch/job" 2>&1 &
job=$!

# running: fails unless the job still runs after a short time.
running() {
  kill -0 $job 2>/dev/null || fail "the job has ended: $(cat "$scratch/job")"
  sleep 0.05
}
until [ -s "$scratch/id" ]; do running; done
id=$(cat "$scratch/id")

# check STATEMENT...: these lines of Python hold for the view in $out.
check() {
  local statements
  statements=$(printf '%s\n' "$@")
  python3 - "$scratch/out" "$statements" <<'PY' || fail "not so: $*"
import json, sys
view = json.loads(open(sys.argv[1]).read())
gpus, headlines = view["gpus"], " ".join(view["headlines"])
exec(sys.argv[2])
PY
}

# Without a GPU there is no library to load, and nothing is shown.
while
  try horo top --once --json "$id"
  [ "$(grep -o '"rank": [01]' "$scratch/out" | wc -l)" != 2 ]
do running; done
if [ ! -d /proc/driver/nvidia/gpus ]; then
  check 'assert gpus == [] and "GPU" not in headlines, view'
fi
pids=$(python3 -c 'import json, sys; print(*[row["pid"] for row in json.load(open(sys.argv[1]))["ranks"]])' "$scratch/out")
read -r pid0 pid1 <<<"$pids"

export HORO_NVML_LIBRARY=$standin
export HORO_NVML_STANDIN="gpus=4 mig=2 lost=3 links=1 pid0=$pid1 pid1=$pid0"
try horo top --once --json "$id"
check 'assert [gpu["index"] for gpu in gpus] == [0, 1, 2, 3], gpus' \
  'assert gpus[0]["ranks"] == [1] and gpus[1]["ranks"] == [0] and gpus[2]["ranks"] == [], gpus' \
  'assert gpus[0]["busy_percent"] == 42 and gpus[0]["celsius"] == 61, gpus' \
  'assert gpus[0]["used_bytes"] == 20 << 30 and gpus[0]["memory_bytes"] == 80 << 30, gpus' \
  'assert gpus[0]["nvlinks"] == [{"peer": "GPU 1", "links": 2}] and gpus[0]["uuid"] == "GPU-standin-0", gpus' \
  'assert gpus[2]["mig_slices"] == 2 and "fallen off the bus" in gpus[3]["problem"], gpus' \
  'assert all(gpu["host"] == view["ranks"][0]["host"] for gpu in gpus), gpus'
try horo top --once "$id"
expect_in "table" "$out" "waits for 1"
expect "head of the GPUs" "$(grep -c 'GPU   busy .* memory used .* ranks .* NVLinks' <<<"$out")" 1
expect "row of GPU 1" "$(grep -cE ' 1 +42 % +20 GiB of 80 GiB +61 C +0 +2 to GPU 2 +NVIDIA Stand-in' <<<"$out")" 1
expect_in "lost GPU" "$out" "  3  cannot be used: it has fallen off the bus"

# Where the output is no terminal, each GPU is a line.
timeout 60 horo top --interval 0.1 "$id" >"$scratch/lines" 2>&1 &
viewer=$!
until grep -qs "GPU 0 on .*: 42 % busy, 20 GiB of 80 GiB used, 61 C, NVLinks 2 to GPU 1; rank 1" "$scratch/lines"; do running; done
kill $viewer
wait $viewer

# A GPU that tells little is shown with what it tells.
HORO_NVML_STANDIN="gpus=2 mute=1" try horo top --once --json "$id"
check 'assert gpus[1]["busy_percent"] is None and gpus[1]["celsius"] is None and gpus[1]["used_bytes"] == 20 << 30, gpus' \
  'assert gpus[0]["busy_percent"] == 42, gpus'

# A library that is missing, is another one, or refuses.
HORO_NVML_LIBRARY=/nowhere/libnvidia-ml.so.1 try horo top --once --json "$id"
check 'assert gpus == [] and len(view["ranks"]) == 2, view' 'assert "there is no /nowhere/libnvidia-ml.so.1" in headlines, view'
HORO_NVML_LIBRARY=libc.so.6 try horo top --once --json "$id"
check 'assert "libc.so.6 has no nvmlInit_v2" in headlines and len(view["ranks"]) == 2, view'
HORO_NVML_STANDIN="init=9" try horo top --once --json "$id"
check 'assert "driver is installed but not running" in headlines and len(view["ranks"]) == 2, view'

# One that never answers does not stop the view, neither once nor again and again.
HORO_NVML_STANDIN="gpus=2 hang=1" try timeout 60 horo top --once --json "$id"
expect "exit code" "$code" 0
check 'assert gpus == [] and len(view["ranks"]) == 2, view' 'assert "driver has not answered for " in headlines, view'
HORO_NVML_STANDIN="gpus=2 hang=1" timeout 60 horo top --interval 0.1 --json "$id" >"$scratch/views" 2>&1 &
viewer=$!
until [ "$(wc -l <"$scratch/views")" -ge 5 ]; do running; done
kill $viewer
wait $viewer
expect "exit code after SIGTERM" $? 143

touch "$scratch/stop"
wait $job
expect "exit code of the job" $? 0
