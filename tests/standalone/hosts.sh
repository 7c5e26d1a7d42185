#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks on several hosts find each other. HORO_HOST_KEY makes several hosts of one machine, under each starter that tells the
# ranks where rank 0 is.
# shellcheck source=tests/standalone/lib.sh
. "$(dirname "$0")/lib.sh"
meeting=$STANDALONE_MEETING

# One rank alone on its host and three on another, in an order that no launcher would choose.
wanted="rank 0/4 local 0/3 cross 0/2 epoch 3 hosts [0,1,3] [2]
rank 1/4 local 1/3 cross 0/1 epoch 3 hosts [0,1,3] [2]
rank 2/4 local 0/1 cross 1/2 epoch 3 hosts [0,1,3] [2]
rank 3/4 local 2/3 cross 0/1 epoch 3 hosts [0,1,3] [2]"
# shellcheck disable=SC2016 # expanded by each rank's shell
split='[ "$HERE" = 2 ] && export HORO_HOST_KEY=b || export HORO_HOST_KEY=a; exec "$0" rounds=3'

# by_secret SHELL-LINE: starts four ranks by hand.
by_secret() {
  local r pids=()
  : >"$scratch/out"
  : >"$scratch/err"
  for r in 3 2 1 0; do
    RANK=$r HERE=$r WORLD_SIZE=4 timeout 60 bash -c "$1" "$meeting" >>"$scratch/out" 2>>"$scratch/err" &
    pids+=($!)
  done
  code=0
  for r in "${pids[@]}"; do wait "$r" || code=$?; done
  out=$(sort "$scratch/out")
  err=$(cat "$scratch/err")
}

export HORO_RENDEZVOUS=127.0.0.1:$((20000 + RANDOM % 10000))
HORO_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export HORO_SECRET
by_secret "$split"
expect "exit code by hand" "$code" 0
expect "hosts by hand" "$out" "$wanted"

# The secret is in a file that only its owner may read.
echo "$HORO_SECRET" >"$scratch/secret"
unset HORO_SECRET
export HORO_SECRET_FILE=$scratch/secret
chmod 644 "$scratch/secret"
RANK=0 WORLD_SIZE=4 HORO_HOST_KEY=a try "$meeting"
expect_in "the error" "$err" "can be read by others"
chmod 600 "$scratch/secret"
mkfifo -m 600 "$scratch/pipe"
HORO_SECRET_FILE=$scratch/pipe RANK=0 WORLD_SIZE=4 HORO_HOST_KEY=a try timeout 20 "$meeting"
expect_in "the error of a pipe as secret file" "$err" "is not a plain file"
by_secret "$split"
expect "exit code with a secret file" "$code" 0
expect "hosts with a secret file" "$out" "$wanted"

# Every rank is told which rank has not come.
export MEETING_SECONDS=2
# shellcheck disable=SC2016 # expanded by each rank's shell
by_secret '[ "$HERE" != 3 ] || exit 0; '"$split"
expect "how many were told" "$(grep -c "timed_out: rank 3 did not come to rank 0's store" <<<"$err")" 3
unset MEETING_SECONDS

# Sums over the hosts. When a rank is killed, the operations of the other ranks on both hosts end.
# shellcheck disable=SC2016 # expanded by each rank's shell
split_rank='[ "$HERE" = 2 ] && export HORO_HOST_KEY=b || export HORO_HOST_KEY=a; exec "$STANDALONE_RANK" '
by_secret "${split_rank}sum sum rounds=2 sum"
expect "exit code of sums" "$code" 0
for victim in 0 2 3; do
  by_secret "${split_rank}sum only=$victim kill lose"
  # If the lost rank was alone on its host, or its leader, no process can tell the other hosts how it ended.
  expect "how many learn that rank $victim was killed" \
    "$(grep -cE "peer_lost: rank $victim on .* was lost: (killed by signal 9 \(SIGKILL\)|ended without leaving the job)" \
      "$scratch/out")" 3
done

# A program that calls only init and shutdown: no rank leaves while others still connect, and rank 0 does not leave with the
# store.
# shellcheck disable=SC2016 # expanded by each rank's shell
for _ in 1 2 3; do
  by_secret "${split_rank}identity"
  expect "exit code of ranks that leave at once" "$code" 0
done
unset HORO_SECRET_FILE HORO_RENDEZVOUS

# The variables do not say where the other host is.
RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1 try "$meeting"
expect "exit code without a store" "$code" 24
expect_in "the error" "$err" "HORO_RENDEZVOUS"
expect_in "the error" "$err" "HORO_SECRET"
HORO_SECRET=abc RANK=0 WORLD_SIZE=4 HORO_HOST_KEY=a try "$meeting"
expect_in "the error" "$err" "64 hexadecimal digits"

tested=hand
if command -v mpirun.openmpi >/dev/null; then
  # shellcheck disable=SC2016 # expanded by each rank's shell
  try mpirun.openmpi --allow-run-as-root --oversubscribe -n 4 bash -c 'HERE=$OMPI_COMM_WORLD_RANK; '"$split" "$meeting"
  expect "exit code under Open MPI" "$code" 0
  expect "hosts under Open MPI" "$(sort <<<"$out")" "$wanted"
  for operations in auto gloo; do # auto: Open MPI moves the data too
    # shellcheck disable=SC2016 # expanded by each rank's shell
    HORO_CPU_OPERATIONS=$operations try mpirun.openmpi --allow-run-as-root --oversubscribe -n 4 \
      bash -c 'HERE=$OMPI_COMM_WORLD_RANK; '"$split_rank sum sum identity"
    expect "exit code of sums under Open MPI with $operations" "$code" 0
    expect "ranks that summed under Open MPI with $operations" "$(grep -c "^rank . of 4" <<<"$out")" 4
  done
  tested+=" openmpi"
fi
if command -v mpiexec.hydra >/dev/null; then
  # shellcheck disable=SC2016 # expanded by each rank's shell
  try mpiexec.hydra -n 4 bash -c 'HERE=$PMI_RANK; '"$split" "$meeting"
  expect "exit code under MPICH" "$code" 0
  expect "hosts under MPICH" "$(sort <<<"$out")" "$wanted"
  # shellcheck disable=SC2016 # expanded by each rank's shell
  try mpiexec.hydra -n 4 bash -c 'HERE=$PMI_RANK; '"$split_rank sum sum identity"
  expect "exit code of sums under MPICH" "$code" 0
  expect "ranks that summed under MPICH" "$(grep -c "^rank . of 4" <<<"$out")" 4
  tested+=" mpich"
fi
[ "$tested" = "hand openmpi mpich" ] || skip "needs mpirun.openmpi and mpiexec.hydra; tested: $tested"
