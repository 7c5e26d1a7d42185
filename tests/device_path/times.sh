#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: times.sh RANKS PLAN LAUNCHED ACTIVITY ...: the trace of a job shows these activities of rank 0's device, each of which the plan
# makes take 20 ms, at the times at which the device ran them. ACTIVITY "-": it says why there are no times. HORO_VIEW: the viewer, which
# must read them, too.
set -euo pipefail
ranks=$1 plan=$2 launched=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$HORO_RUN" -np "$ranks" --timeline-filename "$scratch/trace.json" "$GPU_RANK" times "$plan" "$launched" >"$scratch/out" 2>&1 || { cat "$scratch/out"; exit 1; }
python3 - "$scratch/trace.json" "$scratch/out" "$launched" "$@" <<'PY' || { cat "$scratch/out"; exit 1; }
import json, re, sys

trace, output, launched, *activities = sys.argv[1:]
events = json.load(open(trace))
names = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name" and "name" in e["args"]}
start = next(e["args"]["start_time_since_epoch_in_micros"] for e in events if "start_time_since_epoch_in_micros" in e.get("args", {}))
ready = int(re.search(r"ready at (\d+) us", open(output).read()).group(1)) - start
kClocks = 1000  # Wall clock, counter and monotonic clock agree within this, in microseconds.

device = [e for e in events if e.get("cat") == "device"]
assert all(names[e["pid"]] == "GPU 0: communication stream" for e in device), device
if activities == ["-"]:
    reasons = {e["args"]["reason"] for e in device if e["name"] == "NO_DEVICE_TIMES"}
    assert reasons == {"the times of events could not be read"}, device
    sys.exit()

def operation(tensor):
    """From when to when the tensor's row shows the operation itself."""
    rows = [e for e in events if names.get(e["pid"]) == tensor and e["ph"] in "BE"]
    begin = next(e["ts"] for e in rows if e.get("name") == "ALLREDUCE")
    return begin, rows[-1]["ts"]

def phases(tensor):
    return [e for e in device if e["name"] != "NO_DEVICE_TIMES" and e["args"]["tensor"].split(".")[0] == tensor]

# The device works for an operation while the operation runs.
for tensor in "before", "slow", "late":
    begin, end = operation(tensor)
    assert phases(tensor), tensor
    for e in phases(tensor):
        assert begin - kClocks <= e["ts"] and e["ts"] + e["dur"] <= end + kClocks, (tensor, begin, end, e)

# A stream that is slow at communication is time of the device.
lasted = {}
for e in phases("slow"):
    lasted[e["name"]] = lasted.get(e["name"], 0) + e["dur"]
    assert e["args"]["tensors"] == 2, e
assert set(lasted) == set(activities), lasted
assert all(us >= 20000 for us in lasted.values()), lasted

# A tensor that is not ready is time of the host, not of the device.
begin, end = operation("late")
if launched == "launched":
    assert begin - kClocks <= ready <= end, (begin, ready, end)
for e in phases("late"):
    assert e["ts"] >= ready - e["args"]["error_us"] - kClocks, (ready, e)
PY
[ -n "${HORO_VIEW:-}" ] || exit 0
"$HORO_VIEW" "$scratch/trace.json" --json >"$scratch/figures"
python3 - "$scratch/figures" "$@" <<'PY' || { cat "$scratch/figures"; exit 1; }
import json, sys

path, *activities = sys.argv[1:]
figures = json.load(open(path))
device = figures["device"]
assert device["operations"] == 3 and device["missing"] == [], device
assert {a["name"] for a in device["activities"]} == set(activities), device
slowest = {s["name"]: s for s in figures["slowest"]}
assert slowest["slow"]["device_ns"] >= 20e6 * len(activities), slowest
PY
