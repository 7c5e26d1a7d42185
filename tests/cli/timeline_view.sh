#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo timeline-view: traces that Horovod and PyTorch wrote, and what is none.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

data=$HORO_SOURCE/tests/data
view=(horo timeline-view)

# Compressed or not, from a file, a FIFO or standard input: the same.
try "${view[@]}" "$data/horovod-straggler.json.gz"
expect "exit code" "$code" 0
expect "warnings" "$err" ""
whole=$out
expect_in "verdict" "$(sed -n 2p <<<"$out")" "* operations wait 20.9 ms for their last rank, 40 % of the time; only 6 of 49 say which"
gunzip -c "$data/horovod-straggler.json.gz" >"$scratch/trace.json"
try "${view[@]}" "$scratch/trace.json"
expect "text of the plain file" "$out" "$whole"
mkfifo "$scratch/fifo"
cat "$scratch/trace.json" >"$scratch/fifo" &
try "${view[@]}" "$scratch/fifo"
expect "text of the FIFO" "$out" "$whole"
"${view[@]}" - <"$scratch/trace.json" >"$scratch/out" 2>&1
expect "text of standard input" "$(cat "$scratch/out")" "$whole"

try "${view[@]}" "$data/horovod-resnet50.json.gz" --json
python3 - "$scratch/out" <<'PY' || fail "ResNet-50's figures are wrong"
import json, sys
f = json.load(open(sys.argv[1]))
assert f["tensors"] == 1611, f["tensors"]  # 161 gradients, 10 steps; one number before.
assert f["bytes"] == 10 * 102228128 + 4, f["bytes"]  # 25.6 million floats a step.
assert f["verdicts"][0]["kind"] == "slow_link" and f["verdicts"][1]["kind"] == "slow_packing", f["verdicts"]
PY

# An array that is never closed, as a killed Horovod leaves it, and a cut in the middle of an event.
head -c -1 "$scratch/trace.json" >"$scratch/open.json"
try "${view[@]}" "$scratch/open.json"
expect "exit code of an open array" "$code" 0
expect_in "warning" "$err" "open.json: it ends within the array at byte "
expect "text of an open array" "$out" "$whole"
for bytes in 400 5000 50000; do
  head -c "$bytes" "$scratch/trace.json" >"$scratch/cut.json"
  try "${view[@]}" "$scratch/cut.json"
  expect "exit code of a file cut at $bytes" "$code" 0
  expect_in "warning" "$err" "it ends within the array"
done
{ head -c 50000 "$scratch/trace.json"; echo '%%%'; tail -c 5000 "$scratch/trace.json"; } >"$scratch/damaged.json"
try "${view[@]}" "$scratch/damaged.json"
expect "exit code of a damaged file" "$code" 0
expect_in "warning" "$err" "damaged at byte 50"

# PyTorch's profiler: communication beside computing and alone.
cat >"$scratch/profile.json" <<'JSON'
{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
 "deviceProperties": [{"id": 0, "name": "x"}],
 "traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": 1000.0, "dur": 100.0, "args": {"stream": 7}},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32", "pid": 0, "tid": "stream 9", "ts": 1050.5, "dur": 100.0,
   "args": {"In msg nelems": 1000000, "dtype": "Float", "Group size": 8}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 77, "tid": 77, "ts": 1000, "dur": 5},
  {"ph": "f", "id": 1, "pid": 0, "tid": 7, "ts": 1050, "cat": "ac2g", "name": "ac2g", "bp": "e"}
 ], "traceName": "x"}
JSON
try "${view[@]}" "$scratch/profile.json" --json
python3 - "$scratch/out" <<'PY' || fail "the profiler's figures are wrong"
import json, sys
f = json.load(open(sys.argv[1]))
assert f["operations"] == 1 and f["bytes"] == 4000000, f
rank = f["ranks"][0]
assert rank["communicated_ns"] == 100000 and rank["computed_ns"] == 100000, rank
assert abs(rank["exposed_ns"] - 50500) < 2, rank
PY

# Parts of it, other forms.
try "${view[@]}" "$scratch/trace.json" --from 1 --to 2 --json --top 3
python3 - "$scratch/out" <<'PY' || fail "--from, --to or --top do not hold"
import json, sys
f = json.load(open(sys.argv[1]))
assert 0 < f["operations"] < 100 and len(f["slowest"]) == 3
assert all(1e9 - 1e8 <= s["at_ns"] <= 2e9 for s in f["slowest"])
PY
try "${view[@]}" --csv "$scratch/trace.json"
expect_in "header" "$(head -n 1 <<<"$out")" "rank,host,arrivals,last,"
expect "lines" "$(wc -l <<<"$out")" 4
try "${view[@]}" --compare "$scratch/trace.json" "$data/horovod-resnet50.json.gz"
expect "exit code" "$code" 0
expect_in "comparison" "$out" "negotiation, mean"

# A page that needs nothing from anywhere.
try "${view[@]}" --html "$scratch/report.html" "$scratch/trace.json"
expect "exit code of --html" "$code" 0
python3 - "$scratch/report.html" <<'PY' || fail "the page is wrong"
import json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", page), "the page wants something"
parts = {name: json.loads(re.search(r'<script id="%s" type="application/json">(.*?)</script>' % name, page, re.S).group(1))
         for name in ("figures", "lanes")}
assert parts["figures"]["operations"] == len(parts["lanes"]["operations"]) > 0
assert all(0 <= a <= b <= c for _, a, b, c, *_ in parts["lanes"]["operations"])
PY
cat >"$scratch/hostile.json" <<'JSON'
[{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "</script><script>{{FIGURES}}"}},
 {"ph": "B", "name": "ALLREDUCE", "ts": 100, "pid": 1}, {"ph": "E", "ts": 200, "pid": 1}]
JSON
try "${view[@]}" --html "$scratch/hostile.html" "$scratch/hostile.json"
expect "scripts on a page with a hostile name" "$(grep -c '<script' "$scratch/hostile.html")" "$(grep -c '<script' "$scratch/report.html")"
refused "exclude each other" "${view[@]}" --html x --json "$scratch/trace.json"

# What is no timeline is refused with its name and the reason.
unusable() {
  try "${view[@]}" "$1"
  expect "exit code of $1" "$code" 1
  expect "standard output of $1" "$out" ""
  expect_in "error of $1" "$err" "$2"
}
: >"$scratch/empty"
echo "rank 0 says hello" >"$scratch/words"
echo '{"a": ' >"$scratch/half"
printf 'HOROTL\r\n\x09\x00\x00\x00\x00\x00\x00\x00' >"$scratch/newer.timeline"
printf 'HORO' >"$scratch/short.timeline"
mkdir "$scratch/folder"
unusable "$scratch/empty" "'$scratch/empty' is empty"
unusable "$scratch/words" "is neither a timeline of horo nor a trace in JSON"
unusable "$scratch/newer.timeline" "a timeline of version 9, this program reads version 1"
unusable "$scratch/short.timeline" "cut within its first bytes"
unusable "$scratch/folder" "has no *.timeline"
unusable "$scratch/none" "No such file or directory"
try "${view[@]}" "$scratch/half"
expect_in "half an object" "$err" "$scratch/half"

# A part of the page: one rank's.
try "${view[@]}" --html "$scratch/part.html" --rank 0 "$scratch/trace.json"
expect "exit code of --html with --rank" "$code" 0

# Clocks that jump back are told.
cat >"$scratch/jump.json" <<'JSON'
[{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 9000000, "pid": 1}, {"ph": "E", "ts": 9000100, "pid": 1},
 {"ph": "B", "name": "ALLREDUCE", "ts": 100, "pid": 1}, {"ph": "E", "ts": 200, "pid": 1}]
JSON
try "${view[@]}" "$scratch/jump.json"
expect "exit code of a clock that jumps" "$code" 0
expect_in "warning" "$err" "the clock jumped back 2 times"

refused "no file is given" "${view[@]}"
refused "--compare takes two files or folders, 1 are given" "${view[@]}" --compare "$scratch/trace.json"
refused "option '--rank': 'x' must be a number from 0 to" "${view[@]}" "$scratch/trace.json" --rank x
refused "exclude each other" "${view[@]}" "$scratch/trace.json" --json --csv
refused "unknown option '--nonsense'" "${view[@]}" "$scratch/trace.json" --nonsense
try "${view[@]}" --snapshot nosuchjob
expect "exit code of a snapshot of nothing" "$code" 1
expect_in "error" "$err" "no process of job 'nosuchjob' that records runs on this host"
