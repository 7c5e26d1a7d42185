#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --dry-run prints the plan and starts no rank.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

try timeout 30 horo run -np 3 -H localhost:4 --dry-run touch "$scratch/started" "a b"
expect "exit code" "$code" 0
[ ! -e "$scratch/started" ] || fail "a rank was started"
expect_in "plan" "$out" "command    touch $scratch/started 'a b'"
expect_in "plan" "$out" "localhost: 3 ranks, 0-2"
expect_in "plan" "$out" "HORO_SIZE=3"

export HORO_GRACE=7s HORO_RANK=9 OLDPWD=/old
try timeout 30 horo run -np 3 --fusion-threshold 1MiB --dry-run --json true
expect "exit code" "$code" 0
python3 - "$scratch/out" <<'PY' || fail "the plan as JSON is wrong"
import json, sys
plan = json.load(open(sys.argv[1]))
assert plan["command"] == ["true"] and plan["hosts"] == [{"name": "localhost", "ranks": [0, 1, 2], "from": None}], plan
assert [r["rank"] for r in plan["ranks"]] == [0, 1, 2]
assert [r["local_rank"] for r in plan["ranks"]] == [0, 1, 2]
for rank in plan["ranks"]:
    env = rank["environment"]
    assert env["HORO_RANK"] == env["RANK"] == env["HOROVOD_RANK"] == str(rank["rank"])
    assert env["MASTER_ADDR"] == "127.0.0.1" and 0 < int(env["MASTER_PORT"]) < 65536
    cluster = json.loads(env["TF_CONFIG"])
    assert len(set(cluster["cluster"]["worker"])) == 3 and cluster["task"]["index"] == rank["rank"]
common = plan["environment"]
assert common["HORO_FUSION_THRESHOLD"] and common["HOROVOD_FUSION_THRESHOLD"] == str(1 << 20)
assert "PATH" in plan["inherited"] and "HORO_RANK" not in plan["inherited"] and "OLDPWD" not in plan["inherited"]
assert plan["grace_seconds"] == 7
PY

# Each rank gets its share of the cores. A value that the user has set stays unchanged.
unset OMP_NUM_THREADS
share() {
  try timeout 30 taskset -c "$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')" horo run -np "$1" "${@:2}" sh -c 'echo "${OMP_NUM_THREADS-none}"'
}
share 2 --dry-run
expect_in "plan" "$out" "  OMP_NUM_THREADS=1"
share 2 --tag off --verbose
expect "threads" "$out" "1
1"
expect_in "what --verbose says" "$err" "OMP_NUM_THREADS=1"
share 1
expect "threads of a single rank" "$out" none
OMP_NUM_THREADS=5 share 2 --tag off
expect "threads of the user" "$out" "5
5"

# The plan over several hosts is complete, whether or not the hosts can be reached.
try timeout 30 horo run -np 6 -H 'node[01-03]:4' --map-by spread --dry-run --json python3 train.py
expect "exit code" "$code" 0
python3 - "$scratch/out" <<'PY' || fail "the plan over three hosts is wrong"
import json, sys
plan = json.load(open(sys.argv[1]))
assert plan["hosts"] == [{"name": f"node0{i + 1}", "ranks": [2 * i, 2 * i + 1], "from": None} for i in range(3)], plan["hosts"]
last = plan["ranks"][5]["environment"]
assert (last["HORO_LOCAL_RANK"], last["HORO_CROSS_RANK"], last["HORO_CROSS_SIZE"]) == ("1", "2", "3"), last
assert last["MASTER_ADDR"] == "node01" and last["HORO_HOSTNAME"] == "node03", last
assert "GLOO_SOCKET_IFNAME" not in plan["environment"], plan["environment"]
PY
try timeout 30 horo run --ranks-per-host 2 -H a,b --map-by host --dry-run true
expect_in "plan" "$out" "host       a: 2 ranks, 0,2"
expect_in "plan" "$out" "starter    ssh"
expect_in "plan" "$out" "     3  b                          1 of 2       1 of 2"

refused "4 slots wanted, 3 available (localhost:3)" horo run -np 4 -H localhost:3 true
refused "-H: column 1: slots in 'localhost:x'" horo run -np 2 -H localhost:x true
refused "at most 1024" horo run -np 1025 -H localhost:2000 true
refused "-H: column 5: host 'n[1-999999999]' stands for more than 100000 hosts" horo run -np 2 -H 'a:1,n[1-999999999]' true
printf 'localhost slots=2\nlocalhost:x\n' >"$scratch/hosts"
refused "hostfile '$scratch/hosts': line 2: slots in 'localhost:x'" horo run -np 2 -hostfile "$scratch/hosts" true
