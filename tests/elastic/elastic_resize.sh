#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo shrink and horo grow change an elastic job on this machine.
# shellcheck source=tests/cli/lib.sh
. "$HORO_SOURCE/tests/cli/lib.sh"
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"

# The id of the job that runs. Its launcher has a socket of this name.
job_id() { sed -n "s|.*@horo-job/$UID/$job/||p" /proc/net/unix | head -n 1; }

# Slots are taken and given. Ranks leave at the end of a step, with exit code 0, and nobody repeats anything.
begin -np 3 --min-np 2 -H localhost:3 --json-report "$scratch/report"
until_out 'generation 1, rank . of 3' 3
id=$(job_id)
ask horo shrink "$id" localhost
expect "exit code of a shrink below --min-np" "$code" 1
expect_in "its reason" "$err" "only 0 slots would be left, 2 fewer than --min-np 2 asks for"
ask horo shrink "$id" --dry-run localhost:2
expect "exit code of a dry run" "$code" 0
ask horo shrink "$id" localhost:2
expect "exit code of a shrink" "$code" 0
expect_in "its answer" "$out" "job $id: host localhost keeps 2 of 3 slots: 1 rank there ends the step and goes; 2 ranks of the job go on"
until_out 'generation 2, rank . of 2' 2
until_out ': removed$'
ask horo shrink "$id" localhost:2
expect_in "a second shrink" "$err" "host localhost has 2 slots only, so it cannot be shrunk to 2"
ask horo grow "$id" localhost:4
expect_in "the answer to a grow" "$out" "host localhost is used with 4 slots: 2 ranks start there and join at the end of a step when ready"
until_out 'generation ., rank . of 4' 4
ask horo grow "$id" elsewhere:2
expect_in "a host that the job cannot reach" "$err" "the job runs on this machine only, so it cannot use host elsewhere"
ask horo shrink "$id" elsewhere
expect_in "an unknown host" "$err" "the job has no host 'elsewhere'; its hosts are localhost"
touch "$folder/stop"
finish
expect "exit code" "$code" 0
python3 - "$scratch/report" <<'PY' || fail "the report: $(cat "$scratch/report")"
import json, sys
rows = json.load(open(sys.argv[1]))["generations"]
assert rows[1]["size"] == 2 and rows[1]["survivors"] == 2, rows[1]
left = rows[1]["left"]
assert len(left) == 1 and not left[0]["failed"] and "localhost" in left[0]["why"], left
PY

# Commands that name no job, a job that is not elastic, or nothing at all.
ask horo shrink nosuchjob localhost
expect "exit code without a job" "$code" 1
expect_in "its reason" "$err" "no process of job 'nosuchjob'"
begin_fixed() {
  : >"$scratch/out"
  horo run -np 1 --verbose sh -c 'echo ready; exec sleep 300' >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
}
begin_fixed
until_out ready
ask horo grow "$(job_id)" localhost:2
expect_in "a job that is not elastic" "$err" "the job is not elastic, so its ranks are fixed; start it with --min-np or --max-np"
kill -TERM $job
wait $job
refused "no host is named" horo shrink
refused "'node[1-2]:3' stands for 2 hosts; name one" horo grow 'node[1-2]:3'
refused "a job and a host are wanted, 3 words are given" horo grow a b c
refused "'eva@node1' names a user" horo shrink eva@node1
