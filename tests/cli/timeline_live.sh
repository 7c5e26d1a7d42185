#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Commands that look at a running job: horo top, and horo timeline-view with --live, --follow and --snapshot.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

rank=$HORO_BIN/../tests/stall_rank

# begin RANKS WORD...: starts a job in the background whose ranks do these actions; sets $id to its id.
begin() {
  rm -f "$scratch/id" "$scratch/stop"
  # shellcheck disable=SC2016 # for the rank's shell
  timeout 100 horo run -np "$1" "${options[@]}" sh -c '[ "$HORO_RANK" != 0 ] || { echo "$HORO_JOB_ID" >"$1.new" && mv "$1.new" "$1"; }; shift; exec "$@"' \
    sh "$scratch/id" "$rank" "${@:2}" >"$scratch/job" 2>&1 &
  job=$!
  until [ -s "$scratch/id" ]; do running; done
  id=$(cat "$scratch/id")
}
options=()

# running: fails unless the job still runs after a short time.
running() {
  kill -0 $job 2>/dev/null || fail "the job has ended: $(cat "$scratch/job")"
  sleep 0.05
}

# until_seen CONDITION: views the job until this Python condition on `view`, `rows` and `states` is true.
until_seen() {
  while
    try horo top --once --json "$id"
    ! python3 - "$scratch/out" "$1" <<'PY'
import json, sys
text = open(sys.argv[1]).read()
view = json.loads(text) if text.strip() else {"ranks": []}
rows = {row["rank"]: row for row in view["ranks"]}
states = [row["state"] for row in view["ranks"]]
sys.exit(not (rows and eval(sys.argv[2])))
PY
  do running; done
}

# A rank that is late is named in the rows of the waiting ranks and in its own row.
begin 3 reduce=one only=1 "until=$scratch/stop" reduce=gradient
until_seen 'states == ["waits", "computes", "waits"]'
expect "standard error" "$err" ""
python3 - "$scratch/out" "$id" <<'PY' || fail "the view of the ranks is wrong"
import json, os, sys
view = json.load(open(sys.argv[1]))
assert view["job"] == sys.argv[2] and view["size"] == 3, view
rows = view["ranks"]
assert [row["rank"] for row in rows] == [0, 1, 2]
assert all(row["tensor"] == "gradient" and row["missing"] == [1] for row in (rows[0], rows[2])), rows
assert rows[1]["lag_ns"] > 0 and rows[0]["lag_ns"] == rows[2]["lag_ns"] == 0, rows
assert all("stall_rank" in open("/proc/%d/cmdline" % row["pid"]).read() for row in rows)
PY
try horo timeline-view --once --live "$id"
expect "exit code of --live" "$code" 0
expect_in "head" "$out" "job $id, "
expect_in "row of a rank that waits" "$out" "waits for 1"
expect_in "tensor" "$out" "gradient"

# The job is found by the beginning of its id. On a terminal the table is shown until a key is pressed.
python3 - "${id%?}" <<'PY' || fail "horo top failed on a terminal"
import os, pty, select, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("horo", ["horo", "top", sys.argv[1], "--interval", "0.1"])
seen = b""
while b"gradient" not in seen:
    more = os.read(terminal, 65536)
    assert more, seen
    seen += more
os.write(terminal, b"q")
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError:
        break
    seen += more
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 0, seen
assert b"\x1b[?1049h" in seen and seen.rindex(b"\x1b[?1049l") > seen.rindex(b"\x1b[H"), seen
PY

# The snapshot has the operations of this job.
try horo timeline-view --snapshot "$id" --json
expect "exit code of the snapshot" "$code" 0
expect "operations of the snapshot" "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["operations"])' <<<"$out")" 1
folder=/tmp/horo-timeline-$(id -u)/$id
expect "files of the snapshot that others may read" "$(find "$folder" ! -type d ! -perm 600)$(find "$folder" -type d ! -perm 700)" ""
[ -n "$(find "$folder" -name 'rank.*.timeline')" ] || fail "the snapshot has left no files"
rm -rf "$folder"
# After a long wait, the verdict about the missing rank comes first.
while
  try horo timeline-view --snapshot "$id"
  expect "exit code of a later snapshot" "$code" 0
  case $out in *"rank 1 on "*" had not submitted 'gradient', for which 2 ranks had waited "*) false ;; *) ((SECONDS < 60)) ;; esac
do running; done
expect_in "first line" "$(sed '/^$/d' <<<"$out" | head -n 3)" "had not submitted 'gradient'"
rm -rf "/tmp/horo-timeline-$(id -u)/$id"

# Views continue until the job ends, and report its end.
horo top "$id" --interval 0.1 >"$scratch/lines" 2>&1 </dev/null &
top=$!
horo timeline-view --follow "$id" --json --interval 0.1 >"$scratch/followed" 2>&1 </dev/null &
follow=$!
until [ -s "$scratch/lines" ] && [ -s "$scratch/followed" ]; do running; done
touch "$scratch/stop"
wait $job || fail "the job failed: $(cat "$scratch/job")"
wait $top || fail "horo top ended with $?: $(cat "$scratch/lines")"
wait $follow || fail "--follow ended with $?: $(cat "$scratch/followed")"
expect_in "line of a rank" "$(cat "$scratch/lines")" "rank 0 on "
expect "last line" "$(tail -n 1 "$scratch/lines")" "job $id has ended"
python3 - "$scratch/followed" <<'PY' || fail "the figures of the intervals do not add up"
import json, sys
views = [json.loads(line) for line in open(sys.argv[1])]
assert sum(view["operations"] for view in views) == 2, views
PY

# A stopped rank is shown differently from a rank that computes.
begin 2 reduce=one only=1 stop "until=$scratch/stop"
until_seen '"stopped" in states'
expect_in "states" "$(horo top --once "$id" 2>&1)" "stopped"
python3 -c 'import json, os, signal, sys
[os.kill(row["pid"], signal.SIGCONT) for row in json.load(open(sys.argv[1]))["ranks"]]' "$scratch/out"
touch "$scratch/stop"
wait $job || fail "the job failed: $(cat "$scratch/job")"

# A trace is followed to its end while it is written, although its last bytes are overwritten again and again.
options=(--timeline-filename "$scratch/trace.json")
begin 2 steps=20 "touch=$scratch/half" "until=$scratch/stop" steps=20
until [ -s "$scratch/trace.json" ]; do running; done
horo timeline-view --follow "$scratch/trace.json" --interval 0.1 --json >"$scratch/followed" 2>"$scratch/errors" </dev/null &
follow=$!
until [ -s "$scratch/followed" ] && [ -e "$scratch/half" ]; do running; done
touch "$scratch/stop"
wait $job || fail "the job failed: $(cat "$scratch/job")"
wait $follow || fail "--follow ended with $?: $(cat "$scratch/errors")"
expect "warnings of --follow" "$(cat "$scratch/errors")" ""
python3 - "$scratch/followed" <<'PY' || fail "the figures of the trace's intervals do not add up"
import json, sys
views = [json.loads(line) for line in open(sys.argv[1])]
assert sum(view["operations"] for view in views) == 40, views
PY

# The error says why a job cannot be viewed.
try horo top nosuchjob
expect "exit code of a job that is not there" "$code" 1
expect_in "error" "$err" "no process of job 'nosuchjob' with a timeline runs on this host"
try horo timeline-view --follow nosuchjob
expect "exit code of a job that is not there" "$code" 1
printf 'HOROTL\r\n\x01\0\0\0\0\0\0\0' >"$scratch/saved.timeline"
try horo timeline-view --follow "$scratch/saved.timeline"
expect_in "error" "$err" "is complete and will not grow"
try horo help top
expect_in "help" "$out" "usage: horo top [OPTION...] [JOB]"
refused "one job is shown, 2 are given" horo top a b
refused "(see 'horo top --help')" horo top --interval 0
refused "--live takes a job and no files" horo timeline-view --live x "$scratch/trace.json"
refused "--interval is for --live and --follow" horo timeline-view --interval 2 "$scratch/trace.json"
refused "--hosts is for --live" horo timeline-view --hosts h1 "$scratch/trace.json"
refused "option '--hosts': '-x' is not the name of a host" horo top --hosts=-x
refused "--once is for --live" horo timeline-view --once "$scratch/trace.json"
refused "go only with --json and --interval" horo timeline-view --follow --csv "$scratch/trace.json"
