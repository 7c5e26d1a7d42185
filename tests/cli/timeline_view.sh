#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo timeline-view reads traces of Horovod and PyTorch, and refuses files that are not traces.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

data=$HORO_SOURCE/tests/data
view=(horo timeline-view)

# The result is the same for a compressed and a plain trace, and from a file, a FIFO or standard input.
try "${view[@]}" "$data/horovod-straggler.json.gz"
expect "exit code" "$code" 0
expect "warnings" "$err" ""
whole=$out
expect_in "verdict" "$(sed -n 2p <<<"$out")" "* operations wait 20.9 ms for their last rank, 40 % of the time; only 6 of 49 operations show which rank that is: rank 0 was last in 1 of 6 operations"
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
assert f["tensors"] == 1611, f["tensors"]  # 161 gradients in 10 steps, and one number before them.
assert f["bytes"] == 10 * 102228128 + 4, f["bytes"]  # 25.6 million floats in each step.
assert f["verdicts"][0]["kind"] == "slow_link" and f["verdicts"][1]["kind"] == "slow_packing", f["verdicts"]
PY

# The figures show that one operation takes as long as its device works, and that another one queues.
try "${view[@]}" "$data/horo-devices.json.gz" --json
python3 - "$scratch/out" <<'PY' || fail "the figures of devices are wrong"
import json, sys
f = json.load(open(sys.argv[1]))
device = f["device"]
assert device["operations"] == 3 and device["missing"] == [], device
assert [a["name"] for a in device["activities"]] == ["NCCL_ALLREDUCE", "PACK", "UNPACK"], device
assert 0.4 < device["worked_ns"] / device["host_ns"] < 0.6, device
slowest = {s["name"]: s for s in f["slowest"]}
assert slowest["slow"]["device_ns"] > 0.95 * slowest["slow"]["moved_ns"], slowest
assert slowest["late"]["device_ns"] < 0.1 * slowest["late"]["moved_ns"], slowest
PY
try "${view[@]}" "$data/horo-devices.json.gz"
expect_in "the devices' share" "$out" "3 operations on devices took 192 ms, and a rank's device worked for 98.1 ms, 51 % of it"

# An array that is never closed, as a killed Horovod leaves it, and a trace that ends inside an event.
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

# PyTorch's profiler: communication that overlaps computation, and communication alone.
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

# horo's trace of all ranks has a row per tensor and rank. The rows of one operation count as one operation, and fused
# tensors begin at the same moment.
cat >"$scratch/ranks.json" <<'JSON'
[{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "a"}}, {"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "b"}},
 {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 100, "pid": 1, "tid": 0}, {"ph": "X", "name": "0", "dur": 0, "ts": 100, "pid": 1, "tid": 0},
 {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 101, "pid": 2, "tid": 0}, {"ph": "X", "name": "0", "dur": 0, "ts": 101, "pid": 2, "tid": 0},
 {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 300, "pid": 1, "tid": 1}, {"ph": "X", "name": "1", "dur": 0, "ts": 300, "pid": 1, "tid": 1},
 {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 350, "pid": 2, "tid": 1}, {"ph": "X", "name": "1", "dur": 0, "ts": 350, "pid": 2, "tid": 1},
JSON
for time in 360 370; do
  tid=$((time / 370))
  for pid in 1 2; do
    printf '{"ph": "E", "ts": %d, "pid": %d, "tid": %d}, {"ph": "B", "name": "ALLREDUCE", "ts": %d, "pid": %d, "tid": %d},\n' \
      $time $pid $tid $time $pid $tid
  done
  for pid in 1 2; do
    printf '{"ph": "B", "name": "SHM_ALLREDUCE", "ts": %d, "pid": %d, "tid": %d}, {"ph": "E", "ts": 400, "pid": %d, "tid": %d},
{"ph": "E", "args": {"dtype": "float32", "shape": "[4]"}, "ts": 400, "pid": %d, "tid": %d},\n' $time $pid $tid $pid $tid $pid $tid
  done
done >>"$scratch/ranks.json"
try "${view[@]}" "$scratch/ranks.json" --json
python3 - "$scratch/out" <<'PY' || fail "the figures of all ranks' trace are wrong"
import json, sys
f = json.load(open(sys.argv[1]))
assert f["operations"] == 1 and f["tensors"] == 2 and f["fused"] == 1 and f["bytes"] == 32, f
assert [(r["rank"], r["arrivals"], r["last"]) for r in f["ranks"]] == [(0, 1, 0), (1, 1, 1)], f["ranks"]
slow = f["slowest"][0]
assert slow["last_rank"] == 1 and slow["negotiated_ns"] == 249000 and slow["moved_ns"] == 40000, slow
PY

# A part of the trace, and other output formats.
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
expect "what neither trace knows" "$(grep ^waiting <<<"$out" | tr -s ' ')" "waiting - - -"

# The HTML page is self-contained.
try "${view[@]}" --html "$scratch/report.html" "$scratch/trace.json"
expect "exit code of --html" "$code" 0
python3 - "$scratch/report.html" <<'PY' || fail "the page is wrong"
import json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", page), "the page loads something"
parts = {name: json.loads(re.search(r'<script id="%s" type="application/json">(.*?)</script>' % name, page, re.S).group(1))
         for name in ("figures", "lanes")}
assert parts["figures"]["operations"] == len(parts["lanes"]["operations"]) > 0
assert all(0 <= a <= b <= c for _, a, b, c, *_ in parts["lanes"]["operations"])
PY
cat >"$scratch/hostile.json" <<'JSON'
[{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "</script><script>{{FIGURES}}"}},
 {"ph": "B", "name": "ALLREDUCE", "ts": 100, "pid": 1}, {"ph": "E", "ts": 200, "pid": 1}]
JSON
# If the report does not fit on the disk, the earlier report stays. A link stays a link, and permissions stay unchanged.
ln -s report.html "$scratch/link.html"
chmod 640 "$scratch/report.html"
cp "$scratch/report.html" "$scratch/before.html"
echo "no trace" >"$scratch/bad.json"
try "${view[@]}" --html "$scratch/link.html" "$scratch/bad.json"
expect "exit code of a bad trace" "$code" 1
# shellcheck disable=SC2016 # expanded by that shell
try bash -c 'ulimit -f 8; trap "" XFSZ; exec "$@"' _ "${view[@]}" --html "$scratch/link.html" "$scratch/trace.json"
expect "exit code without room" "$code" 1
expect_in "error without room" "$err" "$scratch/link.html: File too large"
cmp -s "$scratch/before.html" "$scratch/report.html" || fail "the earlier report was changed"
try "${view[@]}" --html "$scratch/link.html" "$scratch/trace.json"
expect "exit code over an old report" "$code" 0
expect "permissions" "$(stat -c %a "$scratch/report.html")" 640
[ -L "$scratch/link.html" ] || fail "the link was replaced by a file"
expect "what is left beside" "$(find "$scratch" -name '*.part')" ""
try "${view[@]}" --html /dev/stdout "$scratch/trace.json"
expect "page on standard output" "$(grep -c '<title>' <<<"$out")" 1

try "${view[@]}" --html "$scratch/hostile.html" "$scratch/hostile.json"
expect "scripts on a page with a hostile name" "$(grep -c '<script' "$scratch/hostile.html")" "$(grep -c '<script' "$scratch/report.html")"
refused "--from 5 is after --to 3" "${view[@]}" --from 5 --to 3 "$scratch/trace.json"
try "${view[@]}" --rank 777 "$scratch/trace.json"
expect_in "warning" "$err" "--rank 777: there is no such rank among the "
refused "exclude each other" "${view[@]}" --html x --json "$scratch/trace.json"

# A file that is not a timeline is refused with its name and the reason.
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
try "${view[@]}" --html "$scratch/nowhere/report.html" "$scratch/trace.json"
expect "exit code of a report in no folder" "$code" 1
expect_in "error" "$err" "$scratch/nowhere/report.html: No such file or directory"
if [ "$(id -u)" = 0 ]; then stranger=(setpriv --reuid 65534 --regid 65534 --clear-groups); else stranger=(); fi
chmod 755 "$scratch" && chmod 000 "$scratch/words"
if "${stranger[@]}" "$HORO_BIN/horo" --version >/dev/null 2>&1; then
  try "${stranger[@]}" "$HORO_BIN/horo" timeline-view "$scratch/words"
  expect "exit code of a file of another user" "$code" 1
  expect_in "error" "$err" "$scratch/words: Permission denied"
  mkdir -m 755 "$scratch/mine"
  [ -z "${stranger[*]}" ] || { try "${stranger[@]}" "$HORO_BIN/horo" timeline-view --html "$scratch/mine/report.html" "$scratch/trace.json"
    expect "exit code of a report in a folder of another user" "$code" 1
    expect_in "error" "$err" "$scratch/mine/report.html: Permission denied"; }
else
  echo "not checked: missing permissions (the user nobody cannot run $HORO_BIN/horo)"
fi
try "${view[@]}" "$scratch/half"
expect_in "half an object" "$err" "$scratch/half"

# The page never replaces one of its inputs, whatever its name.
cp "$scratch/trace.json" "$scratch/kept.json"
ln "$scratch/kept.json" "$scratch/other-name.json"
try "${view[@]}" --html "$scratch/other-name.json" "$scratch/kept.json"
expect "exit code of a page over its input" "$code" 1
expect_in "error" "$err" "--html would overwrite its input '$scratch/kept.json'"
cmp -s "$scratch/trace.json" "$scratch/kept.json" || fail "the input was changed"

# The page of one rank.
try "${view[@]}" --html "$scratch/part.html" --rank 0 "$scratch/trace.json"
expect "exit code of --html with --rank" "$code" 0

# A clock that jumps back is reported.
cat >"$scratch/jump.json" <<'JSON'
[{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 9000000, "pid": 1}, {"ph": "E", "ts": 9000100, "pid": 1},
 {"ph": "B", "name": "ALLREDUCE", "ts": 100, "pid": 1}, {"ph": "E", "ts": 200, "pid": 1}]
JSON
try "${view[@]}" "$scratch/jump.json"
expect "exit code of a clock that jumps" "$code" 0
expect_in "warning" "$err" "the clock jumped back once"

# Times are relative to the earliest event, wherever it is in whichever file.
cat >"$scratch/order.json" <<'JSON'
{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "nccl_late", "pid": 0, "ts": 2000000, "dur": 100},
 {"ph": "X", "cat": "kernel", "name": "nccl_early", "pid": 0, "ts": -1000000, "dur": 100}]}
JSON
echo '[{"ph": "X", "cat": "kernel", "name": "nccl_last", "pid": 0, "ts": 9000000, "dur": 100}]' >"$scratch/later.json"
at() {
  python3 -c 'import json, sys
print(*sorted((s["name"], s["at_ns"] // 10**9) for s in json.load(open(sys.argv[1]))["slowest"]))' "$scratch/out"
}
try "${view[@]}" --json "$scratch/order.json"
expect "all operations" "$(at)" "('nccl_early', 0) ('nccl_late', 3)"
try "${view[@]}" --json --from 2.5 --to 3.5 "$scratch/order.json"
expect "selected operations" "$(at)" "('nccl_late', 3)"
try "${view[@]}" --json --to 3.5 "$scratch/later.json" "$scratch/order.json"
expect "selected operations of two files" "$(at)" "('nccl_early', 0) ('nccl_late', 3)"
try "${view[@]}" --json "$scratch/later.json" "$scratch/order.json"
expect "operations of two files" "$(at)" "('nccl_early', 0) ('nccl_last', 10) ('nccl_late', 3)"
"${view[@]}" --json --to 3.5 - <"$scratch/order.json" >"$scratch/out" 2>"$scratch/err"
expect "selected operations of what can be read but once" "$(at)" "('nccl_late', 0)"

# Files written by editors on Windows begin with a byte-order mark.
{ printf '\xef\xbb\xbf'; cat "$scratch/trace.json"; } >"$scratch/marked.json"
try "${view[@]}" "$scratch/marked.json"
expect "warnings of a byte-order mark" "$err" ""
expect "text behind a byte-order mark" "$out" "$whole"

# Two traces in one file.
cat "$scratch/order.json" "$scratch/later.json" >"$scratch/both.json"
try "${view[@]}" "$scratch/both.json"
expect_in "warning" "$err" "both.json: it ends at byte "

# Errors of writing are reported.
for form in --json --csv; do
  "${view[@]}" $form "$scratch/trace.json" >/dev/full 2>"$scratch/err"
  expect "exit code of a full disk" $? 1
  expect_in "error" "$(cat "$scratch/err")" "standard output: No space left on device"
done

try timeout -s KILL 60 "${view[@]}" --follow "$scratch/fifo"
expect "exit code of a FIFO that is followed" "$code" 1
expect_in "error" "$err" "'$scratch/fifo' is not a regular file; read it without --follow"

try timeout -s KILL 60 "${view[@]}" --follow --interval 0.05 "$scratch/jump.json"
expect_in "warning of a trace that is followed" "$err" "the clock jumped back once"

# If another job writes a new trace under the same name, --follow starts again at its beginning.
timeout -s KILL 60 python3 - "$scratch/anew.json" "${view[@]}" --follow --json --interval 0.05 <<'PY' || fail "a trace that was started again is not followed"
import json, subprocess, sys
path, command = sys.argv[1], sys.argv[2:]
event = '{"ph": "X", "cat": "kernel", "name": "nccl", "pid": 0, "ts": %d, "dur": 100}'
with open(path, "w") as file:
    file.write("[" + ",\n".join(event % i for i in range(9000, 9005)))
    file.flush()
    viewer = subprocess.Popen([*command, path], stdout=subprocess.PIPE)
    assert json.loads(viewer.stdout.readline())["operations"] == 5
    file.seek(0)
    file.truncate()
    file.write("[" + event % 7)
    file.flush()
    assert json.loads(viewer.stdout.readline())["operations"] == 1
assert viewer.wait() == 0
PY

refused "no file is given" "${view[@]}"
refused "--compare and --snapshot exclude each other" "${view[@]}" --compare --snapshot x "$scratch/trace.json" "$scratch/trace.json"
refused "--compare takes two files or folders, 1 are given" "${view[@]}" --compare "$scratch/trace.json"
refused "option '--rank': 'x' must be a number from 0 to" "${view[@]}" "$scratch/trace.json" --rank x
refused "exclude each other" "${view[@]}" "$scratch/trace.json" --json --csv
refused "unknown option '--nonsense'" "${view[@]}" "$scratch/trace.json" --nonsense
try "${view[@]}" --snapshot nosuchjob
expect "exit code of a snapshot of nothing" "$code" 1
expect_in "error" "$err" "no process of job 'nosuchjob' with a timeline runs on this host"
