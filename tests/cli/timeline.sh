#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The last moments of a job are saved when it fails, and a trace is written on request.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

rank=$HORO_BIN/../tests/stall_rank

# A rank is killed after its peers have their sums. Its record and the records of its peers are saved.
try timeout 60 horo run -np 3 --timeline-directory "$scratch/last" --json-report "$scratch/report.json" \
  "$rank" reduce=first reduce=second only=0 touch="$scratch/zero" only=2 touch="$scratch/two" \
  only=1 until="$scratch/zero" only=1 until="$scratch/two" only=1 kill lose=third
expect "exit code" "$code" 137
expect_in "report" "$err" "  timeline of 3 ranks: $scratch/last (horo timeline-view $scratch/last)"
expect "files" "$(cd "$scratch/last" && echo ./*)" "./rank.0.timeline ./rank.1.timeline ./rank.2.timeline"
try horo timeline-view "$scratch/last" --json
expect "exit code of the viewer" "$code" 0
expect "warnings of the viewer" "$err" ""
python3 - "$scratch/out" "$scratch/report.json" "$scratch/last" <<'PY' || fail "the figures are wrong"
import json, sys
figures = json.load(open(sys.argv[1]))
assert figures["operations"] == 2 and figures["tensors"] == 2, figures
assert {s["name"] for s in figures["slowest"]} == {"first", "second"}, figures
assert all(s["kind"] == "ALLREDUCE" and s["bytes"] == 4 for s in figures["slowest"])
ranks = figures["ranks"]
assert [r["rank"] for r in ranks] == [0, 1, 2]
assert all(r["arrivals"] == 2 for r in ranks) and sum(r["last"] for r in ranks) == 2
assert figures["verdicts"][0]["kind"] == "lost" and "rank 1" in figures["verdicts"][0]["text"], figures["verdicts"]
assert json.load(open(sys.argv[2]))["timeline"] == sys.argv[3]
PY

# The beginning of a file can be read, with a warning.
head -c -30 "$scratch/last/rank.0.timeline" >"$scratch/cut.timeline"
try horo timeline-view "$scratch/cut.timeline"
expect "exit code with a file that was cut" "$code" 0
expect_in "warning" "$err" "cut.timeline: cut at byte "

# --export chrome merges the files for Chrome's viewer.
try horo timeline-view --export chrome "$scratch/last"
expect "exit code of the export" "$code" 0
python3 - "$scratch/out" <<'PY' || fail "the export is wrong"
import json, sys
events = json.load(open(sys.argv[1]))
assert {e["tid"] for e in events if e["ph"] == "B"} == {0, 1, 2}
rows = [e for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["pid"]]
assert {row["args"]["name"] for row in rows} >= {"first", "second"}
PY

# --export perfetto, with a part of the trace.
try horo timeline-view --export perfetto --rank 1 --to 0.000001 "$scratch/last"
expect "exit code of a part" "$code" 0
python3 - "$scratch/out" <<'PY' || fail "the export of a part is wrong"
import json, sys
events = json.load(open(sys.argv[1]))
assert {e["tid"] for e in events if "tid" in e} <= {1} and len(events) < 20, events
PY

# A rank that does not exist, a file that is given twice, and a full disk.
try horo timeline-view --export chrome --rank 77 "$scratch/last"
expect_in "warning" "$err" "--rank 77: there is no such rank among the 3 ranks"
try horo timeline-view --json "$scratch/last"
cp "$scratch/out" "$scratch/once.json"
try horo timeline-view --json "$scratch/last" "$scratch/last/rank.0.timeline"
expect_in "warning" "$err" "rank 0 has two files: "
python3 - "$scratch/once.json" "$scratch/out" <<'PY' || fail "a file that was given twice was counted twice"
import json, sys
once, twice = (json.load(open(path)) for path in sys.argv[1:])
assert once["operations"] == twice["operations"] > 0 and once["ranks"] == twice["ranks"]
PY
horo timeline-view --export chrome "$scratch/last" >/dev/full 2>"$scratch/err"
expect "exit code of a full disk" $? 1
expect_in "error of a full disk" "$(cat "$scratch/err")" "standard output: No space left on device"

# Nothing is saved of a job that succeeds, or of a job without a recorder.
try timeout 60 horo run -np 2 --timeline-directory "$scratch/good" "$rank" reduce=a
expect "exit code" "$code" 0
[ ! -e "$scratch/good" ] || fail "a job that succeeded has left $scratch/good"
try timeout 60 horo run -np 2 --timeline-directory "$scratch/off" --no-timeline-recorder "$rank" reduce=a only=1 exit=3 lose=b
expect "exit code" "$code" 3
case $err in *timeline*) fail "the recorder was turned off but has recorded" ;; esac
[ ! -e "$scratch/off" ] || fail "the recorder was turned off but has left $scratch/off"

# --output-filename also sets the folder of the timeline.
try timeout 60 horo run -np 2 --output-filename "$scratch/logs" "$rank" reduce=a only=0 exit=3 lose=b
expect "exit code" "$code" 3
[ -s "$scratch/logs/rank.1.timeline" ] || fail "no timeline in $scratch/logs"

# The trace of a running job is JSON with paired begin and end events and Horovod's names.
try timeout 60 horo run -np 2 --timeline-filename "$scratch/trace.json" --timeline-mark-cycles \
  "$rank" reduce=one large=two begin=three finish
expect "exit code" "$code" 0
expect "standard error" "$err" ""
python3 - "$scratch/trace.json" <<'PY' || fail "the trace is wrong"
import collections, json, sys
events = json.load(open(sys.argv[1]))
names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["pid"]}
assert set(names.values()) == {"one", "two", "three"}, names
stacks, seen, last = collections.defaultdict(list), collections.defaultdict(list), {}
for e in events:
    if e["ph"] in "BE":
        assert e["ts"] >= last.get(e["pid"], 0)
        last[e["pid"]] = e["ts"]
    if e["ph"] == "B":
        stacks[e["pid"]].append(e["name"])
        seen[names[e["pid"]]].append("/".join(stacks[e["pid"]]))
    if e["ph"] == "E":
        name = stacks[e["pid"]].pop()
        if name == "ALLREDUCE":
            assert e["args"]["dtype"] == "float32" and e["args"]["shape"] in ("[1]", "[16777216]"), e
assert not any(stacks.values()), stacks
copies = ["ALLREDUCE/MEMCPY_%s_FUSION_BUFFER" % way for way in ("IN", "OUT")]
for name, activities in seen.items():
    assert [a for a in activities if a not in copies] == ["NEGOTIATE_ALLREDUCE", "ALLREDUCE", "ALLREDUCE/SHM_ALLREDUCE"], seen
assert set(copies) <= set(seen["two"]), seen  # The tensor is not in an arena, so it is copied.
assert sum(e.get("name") == "CYCLE_START" for e in events) >= 1
assert "start_time_since_epoch_in_micros" in events[0]["args"]
PY
# The trace of rank 0 names the rank that is late, as Horovod's traces do: each negotiation has a tick for each rank. Rank 1
# submits only after the others have, ten times.
late=()
for step in 0 1 2 3 4 5 6 7 8 9; do
  for other in 0 2; do late+=(only=1 "until=$scratch/step.$step.$other"); done
  late+=("begin=grad.$((step % 2))" only=0 "touch=$scratch/step.$step.0" only=2 "touch=$scratch/step.$step.2" finish)
done
try timeout 60 horo run -np 3 --timeline-filename "$scratch/late.json" "$rank" reduce=first "${late[@]}"
expect "exit code" "$code" 0
expect "standard error" "$err" ""
python3 - "$scratch/late.json" <<'PY' || fail "the ticks are wrong: $(cat "$scratch/late.json")"
import collections, json, sys
events = json.load(open(sys.argv[1]))
names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["pid"]}
ticks, negotiations, last = collections.defaultdict(list), [], {}
for e in events:
    if e["ph"] in "BEX":
        assert e["ts"] >= last.get(e["pid"], 0), e
        last[e["pid"]] = e["ts"]
    if e["ph"] == "X":
        ticks[e["pid"]].append(e["name"])
    if e["ph"] == "E" and ticks.get(e["pid"]):
        negotiations.append((names[e["pid"]], ticks.pop(e["pid"])))
assert len(negotiations) == 11, negotiations
assert all(sorted(ranks) == ["0", "1", "2"] for name, ranks in negotiations), negotiations
assert all(ranks[-1] == "1" for name, ranks in negotiations if name != "first"), negotiations
PY
try horo timeline-view "$scratch/late.json"
expect_in "verdict" "$out" "* rank 1 is a straggler: last in 1"

try horo timeline-view "$scratch/trace.json" --json
expect "operations of the trace" "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["operations"])' <<<"$out")" 3

# Horovod's variable asks for the same; --timeline-all-ranks includes all ranks of the host.
HOROVOD_TIMELINE=$scratch/all.json try timeout 60 horo run -np 2 --timeline-all-ranks "$rank" reduce=one
expect "exit code" "$code" 0
python3 -c 'import json, sys
assert {e["tid"] for e in json.load(open(sys.argv[1])) if e["ph"] == "B"} == {0, 1}' "$scratch/all.json" ||
  fail "not all ranks are in the trace"

# If the file cannot be written, a warning is printed and the job continues.
try timeout 60 horo run -np 2 --timeline-filename "$scratch/none/trace.json" "$rank" reduce=one
expect "exit code" "$code" 0
expect_in "warning" "$err" "no trace is written: $scratch/none/trace.json: "

# Operations are ranges for NVIDIA's profilers. A stand-in replaces their library.
nvtx() {
  rm -f "$scratch/nvtx"
  LD_LIBRARY_PATH=$HORO_BIN/../tests/nvtx NVTX_STANDIN_FILE=$scratch/nvtx try timeout 60 "$@" "$rank" reduce=one begin=two begin=three finish
  expect "exit code" "$code" 0
  expect "standard error" "$err" ""
}
nvtx horo run -np 2
python3 - "$scratch/nvtx" <<'PY' || fail "the ranges are wrong"
import collections, sys
open_, texts = {}, collections.defaultdict(list)
for line in open(sys.argv[1]):
    pid, what, number, text = line.rstrip("\n").split(" ", 3)
    if what == "begin":
        open_[pid, number] = text
        texts[pid].append(text)
    else:
        assert what == "end" and open_.pop((pid, number)), line
assert not open_ and len(texts) == 2, (open_, texts)
for shown in texts.values():
    assert shown[0] == "ALLREDUCE one", shown
    assert shown[1:] in (["ALLREDUCE two", "ALLREDUCE three"], ["ALLREDUCE two and 1 more"]), shown
PY
# If no profiler listens, each rank asks once and then stops.
NVTX_STANDIN_DEAF=1 nvtx horo run -np 2
expect "ranges without a profiler" "$(cut -d" " -f2- "$scratch/nvtx")" "deaf 0 ALLREDUCE one
deaf 0 ALLREDUCE one"
nvtx horo run -np 2 --no-timeline-nvtx
[ ! -e "$scratch/nvtx" ] || fail "--no-timeline-nvtx begins ranges"
HOROVOD_DISABLE_NVTX_RANGES=1 nvtx horo run -np 2
[ ! -e "$scratch/nvtx" ] || fail "HOROVOD_DISABLE_NVTX_RANGES begins ranges"
