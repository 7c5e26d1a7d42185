#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Views of a job on several hosts from where it was started: the states of all ranks, a rank that keeps others waiting, a
# silent host, and a snapshot of all ranks, over ssh and through agents in between.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 3
rank=$HORO_BIN/../tests/stall_rank

# begin ARGUMENT...: starts a job in the background and sets $id to its id.
begin() {
  rm -f "$scratch/id" "$scratch/stop"
  # shellcheck disable=SC2016 # for the rank's shell
  timeout 200 horo run "${options[@]}" sh -c '[ "$HORO_RANK" != 0 ] || { echo "$HORO_JOB_ID" >"$1.new" && mv "$1.new" "$1"; }; shift; exec "$@"' \
    sh "$scratch/id" "$rank" "$@" >"$scratch/job" 2>&1 &
  job=$!
  eventually "the job's id: $(cat "$scratch/job")" '[ -s "$scratch/id" ]'
  id=$(<"$scratch/id")
}

# seen CONDITION: whether this Python condition on `view`, `rows` and `states` holds for the view in $out.
seen() {
  python3 -c 'import json, sys
view = json.loads(sys.argv[1] or "{\"ranks\": [], \"headlines\": []}")
rows = {row["rank"]: row for row in view["ranks"]}
states = [row["state"] for row in view["ranks"]]
headlines = " ".join(view["headlines"])
sys.exit(not eval(sys.argv[2]))' "$out" "$1"
}

# until_seen CONDITION: views the job until CONDITION holds.
until_seen() {
  local i
  for ((i = 0; i < 100; i++)); do
    try timeout 30 horo top --once --json "$id"
    ! seen "$1" || return 0
    kill -0 "$job" 2>/dev/null || fail "the job has ended: $(cat "$scratch/job")"
    sleep 0.1
  done
  fail "never seen: $1 in $out ($err)"
}

late=(reduce=one only=5 "until=$scratch/stop" reduce=gradient)
for options in "-H h1:2,h2:2,h3:2" "-H h1:2,h2:2,h3:2 --fanout 1" "-H h1:2,h2:2,h3:2 --ssh-program ssh" "-H head:2,h2:2,h3:2"; do
  read -ra options <<<"$options"
  begin "${late[@]}"
  until_seen 'len(rows) == 6 and states == ["waits"] * 5 + ["computes"] and rows[5]["lag_ns"] > 1e9'
  expect "standard error" "$err" ""
  seen 'view["job"] == "'"$id"'" and view["size"] == 6 and sorted(rows) == [0, 1, 2, 3, 4, 5]' || fail "the job: $out"
  seen '[rows[r]["host"] for r in (2, 3, 4, 5)] == ["h2", "h2", "h3", "h3"]' || fail "hosts: $out"
  seen 'all(rows[r]["tensor"] == "gradient" and rows[r]["missing"] == [5] for r in range(5))' || fail "the straggler: $out"
  seen '"rank 5 on h3, process " in headlines and "keeps 5 of the others waiting" in headlines' || fail "headline: $out"
  try horo top --once
  expect_in "the table" "$out" "6 ranks"
  expect "its rows" "$(grep -c 'waits for 5 ' <<<"$out")" 5

  # On a host of the job, a view shows the host's own ranks and says where all can be seen.
  if [ "${options[1]}" = h1:2,h2:2,h3:2 ]; then
    expect_in "top on h2" "$(on h2 horo top --once)" "2 of 6 ranks; the others are on other hosts: horo top shows all where horo run was started, at 10.83.0.254"
  fi

  try horo timeline-view --snapshot "$id" --json
  expect "exit code of the snapshot ($err)" "$code" 0
  folder=/tmp/horo-timeline-$(id -u)/$id
  expect "files" "$(cd "$folder" && echo *)" "rank.0.timeline rank.1.timeline rank.2.timeline rank.3.timeline rank.4.timeline rank.5.timeline"
  python3 -c 'import json, sys
figures = json.loads(sys.argv[1])
assert figures["operations"] == 1 and len(figures["ranks"]) == 6, figures
assert not [w for w in figures.get("warnings", []) if "damaged" in w or "missing" in w], figures' "$out" || fail "the snapshot: $out"
  rm -rf "$folder"

  # A view that stays open sees the end of the job.
  horo top "$id" --interval 0.1 >"$scratch/lines" 2>&1 </dev/null &
  top=$!
  eventually "a line" '[ -s "$scratch/lines" ]'
  touch "$scratch/stop"
  wait "$job" || fail "the job failed: $(cat "$scratch/job")"
  wait "$top" || fail "horo top ended with $?: $(cat "$scratch/lines")"
  expect "last line" "$(tail -n 1 "$scratch/lines")" "job $id has ended"
  nothing_left h1 h2 h3
done

# A host that is cut off is silent: its ranks stay in the view with their age, and the other ranks are up to date.
options=(-H "h1:2,h2:2,h3:2" --heartbeat-timeout 60)
begin "${late[@]}"
until_seen 'len(rows) == 6 and states == ["waits"] * 5 + ["computes"]'
horo top "$id" --json --interval 0.2 >"$scratch/lines" 2>&1 </dev/null &
top=$!
eventually "a view with all ranks" 'out=$(tail -n 1 "$scratch/lines") && seen "len(rows) == 6" 2>/dev/null'
hosts cut h2
out=
until seen 'any(row["host"] == "h2" and row["age_ns"] > 1e9 for row in rows.values())'; do
  sleep 0.1
  out=$(tail -n 1 "$scratch/lines")
  kill -0 "$top" 2>/dev/null || fail "horo top has ended: $out"
done
seen 'len(rows) == 6 and all(row["age_ns"] == 0 for row in rows.values() if row["host"] != "h2")' || fail "the others: $out"
seen '"host h2 has not answered for " in headlines' || fail "headline: $out"
try horo top --once "$id"
expect_in "a first look" "$out" "host h2 does not answer"
expect_in "the first look's head" "$out" "4 of 6 ranks"
hosts heal h2
until_seen 'len(rows) == 6 and "h2" not in headlines'
kill "$top"
wait "$top"

# The launcher is stopped: the view says so within seconds and does not hang.
kill -STOP "$(pgrep -x horo-run)"
try timeout 20 horo top --once "$id"
expect "exit code with a stopped launcher" "$code" 1
expect_in "error" "$err" "does not answer; is it stopped?"
kill -CONT "$(pgrep -x horo-run)"

# Clients that send garbage, read nothing or hang up do not disturb the job. Another user is refused.
python3 - "$id" <<'PY' || fail "a client that misbehaves disturbed the job"
import os, re, socket, sys
name = re.search("@(horo-job/[^ \n]*%s)" % sys.argv[1], open("/proc/net/unix").read()).group(1)
for words in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 100000, b"\x05\0\0\0\x01HORA"):
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0" + name)
    try:
        s.sendall(words)
    except OSError:
        pass
    s.close()
silent = [socket.socket(socket.AF_UNIX) for _ in range(3)]
for s in silent:
    s.connect("\0" + name)
if os.fork() == 0:
    os.setuid(65534)
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0" + name)
    os._exit(0 if s.recv(1) == b"" else 1)
assert os.wait()[1] == 0
PY
expect_in "another user" "$(setpriv --reuid 65534 --regid 65534 --clear-groups "$HORO_BIN/horo" top "$id" 2>&1)" "job $id belongs to user root"
until_seen 'len(rows) == 6'

# With a second job, both are named. A killed rank ends its job, and the loss is shown.
first=$job first_id=$id
mv "$scratch/stop" "$scratch/gone" 2>/dev/null
options=(-H "h1:1,h3:1")
begin "reduce=one" "until=$scratch/never" reduce=two
try horo top --once
expect "exit code with two jobs" "$code" 1
expect_in "error" "$err" "several jobs run on this host; name one of "
until_seen 'len(rows) == 2 and view["job"] == "'"$id"'"'
on h3 kill -KILL "$(python3 -c 'import json, sys; print([r["pid"] for r in json.loads(sys.argv[1])["ranks"] if r["host"] == "h3"][0])' "$out")"
wait "$job"
expect "exit code of the second job" "$?" 137
job=$first id=$first_id
until_seen 'len(rows) == 6'
touch "$scratch/stop"
wait "$job" || fail "the job failed: $(cat "$scratch/job")"
nothing_left h1 h2 h3
grep -q horo-job/ /proc/net/unix && fail "a socket is left: $(grep horo-job/ /proc/net/unix)"
for host in h1 h2 h3; do expect "files on $host" "$(on $host bash -c 'ls -d /tmp/horo-snapshot* 2>/dev/null')" ""; done
exit 0
