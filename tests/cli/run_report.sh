#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The report at the end names the rank that failed first and how it failed. The same is available as JSON.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# One rank fails; the other ranks print errors about that and end too.
export scratch
try timeout 30 horo run -np 4 --json-report "$scratch/report.json" bash -c '
  if [ "$RANK" = 2 ]; then
    for i in $(seq 20); do echo "step $i"; done
    echo "cause of it all" >&2
    until [ -e "$scratch/ready0" ] && [ -e "$scratch/ready1" ] && [ -e "$scratch/ready3" ]; do sleep 0.02; done
    exit 3
  fi
  trap "echo peer lost >&2; exit 1" TERM
  touch "$scratch/ready$RANK"
  sleep 20 & wait'
expect "exit code" "$code" 3
report=$(sed -n '/^horo: /,$p' <<<"$err")
expect_in "first line of the report" "$(head -n 1 <<<"$report")" "horo: rank 2 on localhost failed first: exit code 3 after "
expect "last words" "$(grep -c '^    | ' <<<"$report")" 10
expect_in "last words" "$report" "    | cause of it all"
expect_in "the others" "$report" "ranks 0, 1 and 3 ended afterwards: exit code 1 after "
case $(sed '/^horo: /,$d' <<<"$err") in *"peer lost"*) ;; *) fail "the other ranks' output comes after the report" ;; esac

python3 - "$scratch/report.json" <<'PY' || fail "the report as JSON is wrong"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["exit_code"] == 3 and report["survivors"] == 0 and 0 < report["seconds"] < 30, report
first = report["first_failure"]
assert first["kind"] == "exited" and first["rank"] == 2 and first["host"] == "localhost" and first["exit_code"] == 3
assert len(first["last_lines"]) == 10 and "cause of it all" in first["last_lines"]
assert [r["rank"] for r in report["ranks"]] == [0, 1, 2, 3]
assert [r["exit_code"] for r in report["ranks"]] == [1, 1, 3, 1]
assert [r["after_first_failure"] for r in report["ranks"]] == [True, True, False, True]
PY

# A rank that leaves its peers with exit code 0 and no message is named, not the first rank that fails because of it.
probe=$HORO_BIN/../tests/horo_probe
try timeout 60 horo run -np 3 --json-report "$scratch/report.json" "$probe" leave
expect "exit code" "$code" 1
expect_in "report" "$err" "horo: rank 2 on localhost exited with 0 after "
expect_in "report" "$err" " while the others still needed it (it did not call horo_shutdown)"
expect_in "report" "$err" "  ranks 0 and 1 ended afterwards: exit code "
python3 - "$scratch/report.json" <<'PY' || fail "the report as JSON is wrong"
import json, sys
report = json.load(open(sys.argv[1]))
first = report["first_failure"]
assert report["exit_code"] == 1 and first["kind"] == "left" and first["rank"] == 2 and first["exit_code"] == 0, report
PY
try timeout 60 horo run -np 3 "$probe" "all leave"
expect "exit code where all leave so" "$code" 0
expect "standard error where all leave so" "$err" ""

# A successful job writes a JSON report too, and prints nothing unless asked to.
try timeout 30 horo run -np 2 --json-report "$scratch/report.json" true
expect "standard error" "$err" ""
python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["exit_code"] == 0 and r["first_failure"] is None' \
  "$scratch/report.json" || fail "the report of a good end is wrong"
try timeout 30 horo run -np 2 --verbose true
expect_in "verbose end" "$err" "2 of 2 ranks ended well"
expect_in "verbose end" "$err" "survivors: 0"
expect_in "verbose begin" "$err" "horo: host localhost: agent, guard and launcher end the processes"
group=$(sed -n 's/.* so does the control group //p' <<<"$err")
[ -z "$group" ] || [ ! -e "$group" ] || fail "the control group $group is still there"

# If no control group can be made, the job runs anyway, and --verbose says why there is none.
if unshare -m true 2>/dev/null; then
  try timeout 30 unshare -m sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec horo run -np 2 --verbose true'
  expect "exit code" "$code" 0
  expect_in "verbose begin" "$err" "no control group: there is no cgroup v2 hierarchy below /sys/fs/cgroup"
fi

# Bytes that are not text do not break the report.
try timeout 30 horo run -np 1 --json-report "$scratch/report.json" sh -c 'printf "\377\033[31m\001\n" >&2; exit 1'
python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$scratch/report.json" || fail "the report is not valid JSON"

# If the report cannot be written, no rank starts.
refused "opening the report file '$scratch/none/report'" horo run -np 1 --json-report "$scratch/none/report" touch "$scratch/started"
[ ! -e "$scratch/started" ] || fail "a rank was started"

# A Python script fails during an import on one rank.
if command -v python3 >/dev/null; then
  printf 'import os\nif os.environ["RANK"] == "1":\n    import no_such_module\nimport time\ntime.sleep(20)\n' >"$scratch/script.py"
  try timeout 60 horo run -np 2 python3 "$scratch/script.py"
  expect "exit code" "$code" 1
  expect_in "report" "$err" "horo: rank 1 on localhost failed first: exit code 1"
  expect_in "report" "$err" "    | ModuleNotFoundError: No module named 'no_such_module'"
fi

# A pipe as the report file: one that nothing reads is an error at once, one with a reader gets the report.
mkfifo "$scratch/pipe"
refused "the report file '$scratch/pipe' is a pipe that nothing reads; start its reader first" \
  timeout 30 horo run -np 1 --json-report "$scratch/pipe" true
exec 4<>"$scratch/pipe"
try timeout 30 horo run -np 1 --json-report "$scratch/pipe" true
expect "exit code" "$code" 0
head=$(head -n 4 <&4)
expect_in "report through a pipe" "$head" '"exit_code": 0'
exec 4<&-
