#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Timelines of real ranks on two hosts whose clocks differ: a late rank is named with its delay, exposed communication is
# measured, and two runs are compared. The ranks themselves measure the true values with the monotonic clock that these hosts
# share, so a busy machine affects both sides equally.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 2

shift_ms=2500 # shift of h2's clock
export CLOCK_SHIFT=h2=$shift_ms
agent=$scratch/agent
printf '#!/bin/sh\nCLOCK_SHIFT=%s LD_PRELOAD=%s exec %s "$@"\n' "$CLOCK_SHIFT" "$CLOCK_SHIFT_LIBRARY" "$HORO_BIN/horo-agent" >"$agent"
chmod +x "$agent"
before=$(date +%s%3N)
[ $(($(on h2 env LD_PRELOAD="$CLOCK_SHIFT_LIBRARY" date +%s%3N) - before)) -ge $shift_ms ] || fail "the clock of h2 is not ahead"

# record NAME HOSTS RANKS WORD...: runs a job and puts the timelines of its ranks, and their own measurements, in
# $scratch/NAME.
record() {
  local folder=$scratch/$1 hosts=$2 ranks=$3 job id host
  shift 3
  mkdir "$folder" "$folder/saved"
  # shellcheck disable=SC2016 # for the rank's shell
  LD_PRELOAD=$CLOCK_SHIFT_LIBRARY HORO_AGENT_PATH=$agent timeout 200 horo run -H "$hosts" --tag off \
    sh -c 'echo "$HORO_JOB_ID" >"$1/id.$HORO_RANK"; shift; exec "$@"' sh "$folder" \
    "$TRAINEE" "$folder" "$@" >"$folder/out" 2>&1 </dev/null &
  job=$!
  while [ "$(find "$folder" -name 'done.*' | wc -l)" != "$ranks" ]; do
    kill -0 $job 2>/dev/null || fail "the job has ended: $(cat "$folder/out")"
    sleep 0.1
  done
  id=$(cat "$folder/id.0")
  for host in h1 h2; do
    on $host env LD_PRELOAD="$CLOCK_SHIFT_LIBRARY" "$HORO_BIN/horo" timeline-view --snapshot "$id" --json >"$folder/$host.json" 2>"$folder/err" ||
      fail "no snapshot on $host: $(cat "$folder/err")"
  done
  touch "$folder/stop"
  wait $job || fail "the job failed: $(cat "$folder/out")"
  mv "/tmp/horo-timeline-0/$id"/* "$folder/saved"
  rmdir "/tmp/horo-timeline-0/$id"
  try horo timeline-view "$folder/saved" --json
  expect "exit code of the viewer" "$code" 0
  cp "$scratch/out" "$folder/figures.json"
  expect_in "warning of $folder" "$err" "the clock of host h1 is behind that of h2 by "
}

# check NAME: checks the Python code on standard input, which uses `figures` and `times[rank][step]` = (computed, waited,
# met).
check() {
  local name=$1
  {
    cat <<'PY'
import glob, json, statistics, sys
folder = sys.argv[1]
figures = json.load(open(folder + "/figures.json"))
ranks = {rank["rank"]: rank for rank in figures["ranks"]}
times = {int(path.rsplit(".", 1)[1]): [tuple(map(int, line.split())) for line in open(path)]
         for path in glob.glob(folder + "/times.*")}
starved = sum(int(open(path).read()) for path in glob.glob(folder + "/starved.*"))
def near(what, measured, true, share, slack=0):
    print("%s: %.2f ms measured, %.2f ms true: %+.1f %%" % (what, measured / 1e6, true / 1e6, 100 * (measured / true - 1)))
    assert abs(measured - true) <= share * true + slack, (what, slack)
PY
    cat
  } >"$scratch/check.py"
  python3 "$scratch/check.py" "$scratch/$name" || fail "$name: the figures are wrong: $(cat "$scratch/$name/figures.json")"
}

# A late rank on the host whose clock is ahead, among two ranks and among four.
straggler() {
  record "$1" "$2" "$3" 25 late "$4" 60
  CULPRIT=$4 HOST=$5 SHIFT=$shift_ms check "$1" <<'PY'
import os, re
culprit, others = int(os.environ["CULPRIT"]), [rank for rank in times if rank != int(os.environ["CULPRIT"])]
verdict = figures["verdicts"][0]
print(verdict["text"])
assert verdict["kind"] == "straggler" and verdict["text"].startswith("rank %d on %s is a straggler: last in " % (culprit, os.environ["HOST"]))
delays = [delay for delay in (times[culprit][step][0] - max(times[rank][step][0] for rank in others) for step in range(len(times[culprit]))) if delay > 0]
found = ranks[culprit]
assert found["last"] >= 0.9 * found["arrivals"] and found["arrivals"] >= len(delays), found
near("delay of rank %d" % culprit, found["last_by_ns"] / found["last"], statistics.mean(delays), 0.1)
moved, error = re.search(r"by ([0-9.]+) ms, give or take ([0-9.]+)", figures["warnings"][0]).groups()
print("clocks: %s ms apart, give or take %s" % (moved, error))
assert abs(float(moved) - float(os.environ["SHIFT"])) <= float(error) + 0.1, (moved, error)
PY
}
straggler two h1:1,h2:1 2 1 h2
straggler four h1:2,h2:2 4 2 h2
straggler here h1:2,h2:2 4 1 h1

# trace NAME HOSTS RANKS WORD...: runs a job, and puts the trace that rank 0 alone writes in $scratch/NAME.json.
trace() {
  local folder=$scratch/$1 hosts=$2 ranks=$3 job
  shift 3
  mkdir "$folder"
  timeout 200 horo run -H "$hosts" --tag off --timeline-filename "$folder.json" "$TRAINEE" "$folder" "$@" >"$folder/out" 2>&1 </dev/null &
  job=$!
  while [ "$(find "$folder" -name 'done.*' | wc -l)" != "$ranks" ]; do
    kill -0 $job 2>/dev/null || fail "the job has ended: $(cat "$folder/out")"
    sleep 0.1
  done
  touch "$folder/stop"
  wait $job || fail "the job failed: $(cat "$folder/out")"
  try horo timeline-view "$folder.json" --json
  expect "exit code of the viewer" "$code" 0
  cp "$scratch/out" "$folder/figures.json"
}

# The trace of rank 0 names a late rank of the other host, although its own host sees only that host's leader.
trace far h1:2,h2:2 4 25 late 3 60
python3 - "$scratch/far" <<'PY' || fail "the trace does not name rank 3: $(cat "$scratch/far/figures.json")"
import json, sys
verdict = json.load(open(sys.argv[1] + "/figures.json"))["verdicts"][0]
print(verdict["text"])
assert verdict["kind"] == "straggler" and verdict["text"].startswith("rank 3 is a straggler: last in 2"), verdict
ticks = [event["name"] for event in json.load(open(sys.argv[1] + ".json")) if event["ph"] == "X"]
assert {"0", "1", "3"} <= set(ticks), ticks
PY

# A bucket says why it went by hosts or whole, in the trace and in the figures that are made of it.
trace paths h1:2,h2:2 4 3 exposed
python3 - "$scratch/paths" <<'PY' || fail "the paths are wrong: $(cat "$scratch/paths/figures.json")"
import json, sys
events = json.load(open(sys.argv[1] + ".json"))
names = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "process_name" and event["pid"]}
seen = {}
for event in events:
    if "path" in event.get("args", {}):
        seen.setdefault(names[event["pid"]], set()).add((event["args"]["path"], event["args"]["reason"]))
print(seen)
small = ("carried", "so small that the agreement carries it")
first = ("whole", "too small for two more steps")  # The leaders do not know the tensor yet.
assert seen == {"ready": {first, small}, "embedding": {("by hosts", "each byte crosses once")}}, seen
paths = {(row["path"], row["reason"]): row["operations"] for row in json.load(open(sys.argv[1] + "/figures.json"))["paths"]}
assert paths == {first: 1, small: 2, ("by hosts", "each byte crosses once"): 3}, paths
PY

# Communication that a rank waits for, and the same communication overlapped with other work.
for kind in exposed hidden; do record $kind h1:1,h2:1 2 10 $kind; done
check exposed <<'PY'
assert "exposed" in [verdict["kind"] for verdict in figures["verdicts"]], figures["verdicts"]
for rank in times:
    waited, met = (sum(step[column] for step in times[rank]) for column in (1, 2))
    near("rank %d waiting" % rank, ranks[rank]["waited_ns"], waited + met, 0.1)
    # In a meeting, ranks wait for each other and for data; the timeline cannot separate the two. While a thread has no
    # core, ranks wait and no data moves.
    near("rank %d exposed" % rank, min(max(ranks[rank]["exposed_ns"] - met, waited), ranks[rank]["exposed_ns"]), waited, 0.1, starved)
PY
check hidden <<'PY'
for rank in times:
    assert ranks[rank]["communicated_ns"] > 0 and ranks[rank]["exposed_ns"] < 0.3 * ranks[rank]["communicated_ns"], ranks[rank]
PY

try horo timeline-view --compare "$scratch/exposed/saved" "$scratch/hidden/saved"
expect "exit code of the comparison" "$code" 0
python3 - "$out" <<'PY' || fail "the comparison is wrong: $out"
import re, sys
row = re.search(r"^exposed +([0-9.]+) % +([0-9.]+) % ", sys.argv[1], re.M)
assert float(row[2]) < 0.5 * float(row[1]), row[0]
PY

# While a job runs, all its ranks are seen from one of its hosts: the view says which rank waits for which, and why a host is
# not seen.
mkdir "$scratch/live"
# shellcheck disable=SC2016 # for the rank's shell
timeout 200 horo run -H h1:1,h2:1 --tag off sh -c 'echo "$HORO_JOB_ID" >"$1/id.$HORO_RANK"; shift; exec "$@"' sh "$scratch/live" \
  "$TRAINEE" "$scratch/live" 1 late 1 100000 >"$scratch/live/out" 2>&1 </dev/null &
job=$!
# shellcheck disable=SC2317 # `eventually` calls it.
seen() {
  kill -0 "$job" 2>/dev/null || fail "the job has ended: $(cat "$scratch/live/out")"
  # A rank that has not begun to record is not shown yet.
  on h1 "$HORO_BIN/horo" top --once --json --hosts h2 "$(cat "$scratch/live/id.0" 2>/dev/null)" >"$scratch/view" 2>"$scratch/err" || return 1
  python3 - "$scratch/view" <<'PY'
import json, sys
view = json.load(open(sys.argv[1]))
rows = [(row["rank"], row["host"], row["state"], row["missing"]) for row in view["ranks"]]
sys.exit(rows != [(0, "h1", "waits", [1]), (1, "h2", "computes", [])] or view["ranks"][1]["lag_ns"] <= 0)
PY
}
eventually "both hosts' ranks in one view" seen
try on h1 "$HORO_BIN/horo" top --once --hosts h2,nowhere "$(cat "$scratch/live/id.0")"
expect "exit code with a host that is none" "$code" 0
expect_in "head" "$out" ": 2 ranks"
expect_in "the host that is none" "$out" "* no view of nowhere: ssh: Could not resolve hostname nowhere"
kill -TERM $job
wait $job
nothing_left h1 h2
exit 0
