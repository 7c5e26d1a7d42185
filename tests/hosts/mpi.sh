#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Open MPI's mpirun starts the ranks over two hosts and moves their data, also without `horo run`.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
command -v mpirun.openmpi >/dev/null || skip "no mpirun.openmpi here; scripts/packages --install test brings it (openmpi-bin)"
on_hosts 2
rank=$STANDALONE_RANK
export OMPI_MCA_plm_rsh_args="-o BatchMode=yes"

for operations in auto mpi gloo; do
  try timeout 100 horo run --mpi --mpirun mpirun.openmpi -H h1:2,h2:2 --tag off --cpu-operations "$operations" \
    "$rank" sum sum identity
  expect "exit code with --cpu-operations $operations" "$code" 0
  expect "ranks and their hosts" "$(sort <<<"$out")" "rank 0 of 4, local 0 of 2, cross 0 of 2
rank 1 of 4, local 1 of 2, cross 0 of 2
rank 2 of 4, local 0 of 2, cross 1 of 2
rank 3 of 4, local 1 of 2, cross 1 of 2"
done
nothing_left h1 h2

# The timeline contains MPI's transfers and the copies made for them.
try timeout 100 horo run --mpi --mpirun mpirun.openmpi -H h1:1,h2:1 --tag off --cpu-operations mpi \
  --timeline-filename "$scratch/trace.json" "$HORO_BIN/../tests/stall_rank" large=gradient finish
expect "exit code with a trace ($err)" "$code" 0
python3 - "$scratch/trace.json" <<'PY' || fail "the trace is wrong"
import json, sys
seen = [e["name"] for e in json.load(open(sys.argv[1])) if e["ph"] == "B"]
assert seen == ["NEGOTIATE_ALLREDUCE", "ALLREDUCE", "MEMCPY_IN_FUSION_BUFFER", "MPI_ALLREDUCE",
                "MEMCPY_OUT_FUSION_BUFFER"], seen
PY

# A rank is killed while the others are in MPI. They learn which rank was lost and why, and Horo reports it before mpirun
# does.
for victim in 0 3; do
  try timeout 100 horo run --mpi --mpirun mpirun.openmpi -H h1:2,h2:2 --tag off --cpu-operations mpi \
    "$rank" sum "only=$victim" kill lose
  expect "exit code" "$code" 137
  expect_in "the report" "$err" "rank $victim on h$((victim / 2 + 1)) failed first: killed by signal 9 (SIGKILL)"
  expect "how many others heard" "$(grep -cE "peer_lost: rank $victim on h. was lost: " <<<"$out")" 3
done
nothing_left h1 h2

# horo top shows all ranks of such a job, each of which has its own agent. The agents save the job's last moments.
horo run --mpi --mpirun mpirun.openmpi -H h1:2,h2:2 "$HORO_BIN/../tests/stall_rank" reduce=one only=3 "until=$scratch/stop" \
  reduce=gradient only=3 kill reduce=last >"$scratch/job" 2>&1 &
job=$!
# shellcheck disable=SC2016 # evaluated there
eventually "all ranks in horo top: $(cat "$scratch/job")" '[ "$(horo top --once 2>&1 | grep -c " waits for 3 .* gradient")" = 3 ]'
try horo timeline-view --snapshot "" --json
expect "exit code of a snapshot ($err)" "$code" 0
expect "its ranks" "$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)["ranks"]))' <<<"$out")" 4
touch "$scratch/stop"
code=0
wait "$job" || code=$?
expect "exit code" "$code" 137
expect_in "the report" "$(cat "$scratch/job")" "timeline of 4 ranks: "
nothing_left h1 h2

# A rank is killed in the middle of a sum that MPI moves.
worker=$HORO_BIN/bench_loss_worker
if [ -x "$worker" ]; then
  marks=$scratch/marks
  for victim in 1 2; do
    rm -rf "$marks" && mkdir "$marks"
    timeout 100 horo run --mpi --mpirun mpirun.openmpi -H h1:2,h2:2 --tag off --cpu-operations mpi \
      "$worker" "$marks" 16777216 >"$scratch/out" 2>"$scratch/err" &
    job=$!
    eventually "sums of all ranks" '[ "$(ls "$marks" | grep -c "^pid[.].$")" = 4 ]'
    sleep 0.2
    on "h$((victim / 2 + 1))" kill -9 "$(cat "$marks/pid.$victim")" || fail "rank $victim had ended already"
    code=0
    wait $job || code=$?
    expect "exit code" "$code" 137
    expect_in "the report" "$(cat "$scratch/err")" "rank $victim on h$((victim / 2 + 1)) failed first: killed by signal 9"
    # If a rank writes to the lost one at that moment, Open MPI ends it inside its call, so it cannot report the loss. Open
    # MPI names it.
    for other in 0 1 2 3; do
      [ "$other" != "$victim" ] || continue
      grep -qsE "rank $victim on h. was lost: (killed by signal 9|ended without)" "$marks/heard.$other" ||
        grep -qE "\[\[[0-9]+,1\],$other\].*(writev|readv|send|recv).*failed: " "$scratch/out" "$scratch/err" ||
        fail "rank $other did not report the loss, and Open MPI did not end it: $(cat "$scratch/err")"
    done
  done
  nothing_left h1 h2
fi
exit 0
