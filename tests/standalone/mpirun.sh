#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo run --mpi: mpirun starts the ranks, and the job ends and reports like any other. Tested with 2 and 4 ranks, Open MPI
# and MPICH, and ranks in C, in C with MPI, and in Python with torch.
# shellcheck source=tests/standalone/lib.sh
. "$(dirname "$0")/lib.sh"

# job RANKS WORD...: runs ranks under the MPI that is being tested.
job() { try timeout 100 horo run --mpi --mpirun "$mpirun" -np "$1" --json-report "$scratch/report" "${@:2}"; }

# none_left WORD: no process has WORD in its command line, except those that are being reaped.
none_left() {
  local pid state
  for pid in $(pgrep -f -- "$1"); do
    state=$(sed 's/.*) //; s/ .*//' "/proc/$pid/stat" 2>/dev/null)
    case $state in '' | Z | X) ;; *) fail "process $pid is left: $(tr '\0' ' ' <"/proc/$pid/cmdline")" ;; esac
  done
}

# first_failure RANK TEXT: the report names this rank first and contains TEXT.
first_failure() {
  python3 - "$scratch/report" "$1" "$2" <<'PY' || fail "the report of rank $1's end"
import json, sys
report = json.load(open(sys.argv[1]))
first = report["first_failure"]
assert first["rank"] == int(sys.argv[2]) and sys.argv[3] in first["text"], first
assert report["survivors"] == 0, report["survivors"]
PY
}

cat >"$scratch/train.py" <<'PY'
import os, sys, torch, horo.torch as horo
horo.init()
assert horo.size() == int(os.environ["WORLD_SIZE"]) and horo.rank() == int(os.environ["HOROVOD_RANK"])
total = horo.allreduce(torch.full((3,), float(horo.rank())), op=horo.Sum)
assert total[0] == sum(range(horo.size())), total
if len(sys.argv) > 1 and horo.rank() == 1:
    os._exit(3)
print("trained", horo.rank())
if len(sys.argv) > 1:
    horo.allreduce(torch.zeros(3), name="never")
PY

# begin SHELL-WORDS: starts a job of two ranks that sleep under the name $mark; returns when both run. $pid is horo run.
begin() {
  rm -f "$scratch"/up.*
  horo run --mpi --mpirun "$mpirun" -np 2 bash -c "$1 touch '$scratch/up.'\$HORO_RANK; exec -a $mark sleep 1000" \
    >/dev/null 2>"$scratch/err" &
  pid=$!
  until [ -e "$scratch/up.0" ] && [ -e "$scratch/up.1" ]; do
    kill -0 $pid || fail "the job ended by itself: $(cat "$scratch/err")"
    sleep 0.05
  done
}

check() {
  local n places
  for n in 2 4; do
    places=$(for ((r = 0; r < n; r++)); do echo "[$r] rank $r of $n, local $r of $n, cross 0 of 1"; done)
    job $n "$rank" identity sum rounds=3
    expect "exit code of $n ranks" "$code" 0
    expect "places of $n ranks" "$(sort <<<"$out")" "$places"
    expect "what mpirun said" "$err" ""

    job $n "$rank" rounds=2 only=1 kill lose
    expect "exit code after kill -9" "$code" 137
    expect "ranks that lost rank 1" "$(grep -c "peer_lost: rank 1 on localhost was lost: killed by signal 9" <<<"$out")" $((n - 1))
    expect_in "the report" "$err" "rank 1 on localhost failed first: killed by signal 9 (SIGKILL)"
    first_failure 1 "signal 9"

    job $n "$rank" sum only=1 exit=3 lose
    expect "exit code of a rank's exit 3" "$code" 3
    first_failure 1 "exit code 3"
  done

  # A program that calls MPI dies in the middle.
  if "$mpicc" -o "$scratch/mpi_rank" "$(dirname "$0")/mpi_rank.c" 2>"$scratch/err"; then
    job 2 "$scratch/mpi_rank" sum
    expect "exit code of an MPI program ($err)" "$code" 0
    expect "sum of an MPI program" "$(sort <<<"$out")" "[0] sum 3"$'\n'"[1] sum 3"
    job 2 "$scratch/mpi_rank" kill
    expect "exit code of an MPI program that is killed" "$code" 137
    first_failure 1 "signal 9"
    case $err in *"mpirun: "*) fail "mpirun's message about the end that Horo caused is shown" ;; esac
  fi

  # Ctrl-C, with ranks that left their process group.
  mark=hidden$$$RANDOM
  begin "setsid bash -c 'exec -a $mark sleep 1000' &"
  kill -INT "$pid"
  wait "$pid"
  expect "exit code after Ctrl-C" "$?" 130
  none_left "$mark"

  # mpirun itself is killed.
  begin ""
  kill -9 "$(pgrep -P "$(pgrep -x horo-agent -P "$(pgrep -x job-guard -P $pid)")" -f -- --dial-in)"
  wait "$pid"
  expect "exit code after mpirun was killed" "$?" 125
  expect_in "the report" "$(cat "$scratch/err")" "was killed by signal 9 (SIGKILL) while its ranks ran"
  none_left "$mark"

  # The command does not exist. The error does not blame mpirun.
  printf '#!/nowhere/interpreter\n' >"$scratch/broken"
  chmod +x "$scratch/broken"
  job 2 "$scratch/broken"
  expect "exit code of a command that cannot start" "$code" 126

  if [ -n "$STANDALONE_PYTHON" ]; then
    PYTHONPATH=$HORO_BIN/../python job 2 "$STANDALONE_PYTHON" "$scratch/train.py"
    expect "exit code of a torch training ($err)" "$code" 0
    expect "what it printed" "$(sort <<<"$out")" "[0] trained 0"$'\n'"[1] trained 1"
    PYTHONPATH=$HORO_BIN/../python job 2 "$STANDALONE_PYTHON" "$scratch/train.py" fail
    expect "exit code of a torch training that fails" "$code" 3
    first_failure 1 "exit code 3"
  fi
}

tested=
for pair in mpirun.openmpi:mpicc.openmpi mpirun.mpich:mpicc.mpich; do
  mpirun=${pair%:*}
  mpicc=${pair#*:}
  command -v "$mpirun" >/dev/null || continue
  check
  tested+=" $mpirun"
done
[ "$tested" = " mpirun.openmpi mpirun.mpich" ] || skip "needs mpirun.openmpi and mpirun.mpich; tested:$tested"
