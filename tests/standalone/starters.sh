#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks find their places under Open MPI's mpirun, MPICH's mpiexec and a bare environment.
# shellcheck source=tests/standalone/lib.sh
. "$(dirname "$0")/lib.sh"

places=$(for r in 0 1 2 3; do echo "rank $r of 4, local $r of 4, cross 0 of 1"; done)

export HORO_JOB_ID=starters-$$
by_hand 4 identity sum
expect "exit codes by hand" "$codes" "0 0 0 0"
expect "places by hand" "$out" "$places"
unset HORO_JOB_ID

# Without a variable that identifies the job, the ranks refuse to guess.
by_hand 2 sum
expect "exit codes without a name for the job" "$codes" "11 11"
expect_in "the error" "$err" "HORO_JOB_ID"
expect_in "the error" "$err" "MASTER_PORT"

# If one of two variables is missing, the error names it.
RANK=1 try "$rank" sum
expect "exit code with RANK alone" "$code" 11
expect_in "the error" "$err" "RANK=1 is set but WORLD_SIZE is not"

# The shell of a batch job is not a rank.
SLURM_JOB_ID=1 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 try "$rank" identity sum
expect "place in a batch job's shell" "$out" "rank 0 of 1, local 0 of 1, cross 0 of 1"

tested=hand
if command -v mpirun.openmpi >/dev/null; then
  try mpirun.openmpi --allow-run-as-root --oversubscribe -n 4 "$rank" identity sum
  expect "exit code under Open MPI" "$code" 0
  expect "places under Open MPI" "$(sort <<<"$out")" "$places"
  RANK=0 WORLD_SIZE=1 try mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 "$rank" sum
  [ "$code" != 0 ] || fail "variables left over from another job were used"
  expect_in "the error" "$err" "RANK=0 WORLD_SIZE=1 and OMPI_COMM_WORLD_RANK"
  tested+=" openmpi"
fi
if command -v mpiexec.hydra >/dev/null; then
  try mpiexec.hydra -n 4 "$rank" identity sum
  expect "exit code under MPICH" "$code" 0
  expect "places under MPICH" "$(sort <<<"$out")" "$places"
  # Two jobs with the same environment run at the same time.
  # shellcheck disable=SC2016 # expanded by that shell
  try bash -c 'mpiexec.hydra -n 3 "$0" sum sum sum & one=$!; mpiexec.hydra -n 3 "$0" sum sum sum && wait $one' "$rank"
  expect "exit code of two jobs at once" "$code" 0
  tested+=" mpich"
fi
echo "tested: $tested"
[ "$tested" = "hand openmpi mpich" ] || skip "needs mpirun.openmpi and mpiexec.hydra; tested: $tested"
