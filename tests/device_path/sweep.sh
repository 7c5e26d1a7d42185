#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: sweep.sh BUILD FIRST COUNT: plays COUNT seeds in each way in which tensors in device memory move, and every planted fault at
# its first calls, and prints what was played and what failed or hung. Not in CI: it takes minutes.
set -uo pipefail
build=$1 first=$2 count=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
tests=$build/tests
export HORO_GPU_DRIVER=$tests/horo-software-device.so HORO_GPU_NCCL=$tests/horo-software-nccl.so
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# play NAME RANKS TEXT VARIABLES -- ARGUMENTS: the job ends well within two minutes, and says TEXT.
play() {
  local name=$1 ranks=$2 text=$3 variables=() code
  shift 3
  while [ "$1" != -- ]; do variables+=("$1") && shift; done
  shift
  timeout 120 env "${variables[@]}" "$build/bin/horo-run" -np "$ranks" "$tests/gpu_rank" "$@" >"$scratch/out" 2>&1
  code=$?
  [ "$code" = 0 ] && grep -q "$text" "$scratch/out" && ! grep -q "finding:" "$scratch/out" && return 0
  echo "FAILED ($code): $name: ${variables[*]} $*"
  head -20 "$scratch/out"
  failed=$((failed + 1))
  return 1
}

kernels=HORO_GPU_KERNELS=$root/tests/software_device/software_kernels
own="GPU_RANK_DEVICES=1 HORO_SOFTWARE_DEVICE=devices=4"
ways=(
  "NCCL|3|HORO_GPU_OPERATIONS=nccl HORO_SOFTWARE_NCCL=room=1 $own"
  "NCCL|4|HORO_GPU_OPERATIONS=nccl HORO_SOFTWARE_NCCL=room=1 $own"
  "NCCL with kernels|3|HORO_GPU_OPERATIONS=nccl HORO_SOFTWARE_NCCL=room=1 $kernels $own"
  "NCCL on 2 streams|4|HORO_GPU_OPERATIONS=nccl HORO_NUM_NCCL_STREAMS=2 HORO_SOFTWARE_NCCL=room=2 $kernels $own"
  "ipc, NCCL and staged|3|HORO_GPU_OPERATIONS=auto HORO_SOFTWARE_NCCL=room=1 $kernels $own"
  "ipc on one GPU|3|HORO_GPU_OPERATIONS=ipc $kernels"
  "staged|3|HORO_GPU_OPERATIONS=staged"
)
for way in "${ways[@]}"; do
  IFS='|' read -r name ranks variables <<<"$way"
  # shellcheck disable=SC2086 # words
  play "$name" "$ranks" "$count seeds agree" $variables -- seeds "$first" "$count" &&
    echo "$name on $ranks ranks: $count seeds from $first agree"
done

# The call of that number behind the submission fails on rank 0. Where the operation needs fewer such calls, it is right.
played=0
for call in cuEventRecord cuStreamWaitEvent cuEventQuery cuEventCreate cuMemAlloc cuCtxPushCurrent ncclGroupStart ncclAllReduce ncclGroupEnd; do
  for number in 1 2 3 4 5; do
    device="fail=$call@$number:719" nccl=-
    case $call in nccl*) device=- nccl="fail=$call@$number:1" ;; esac
    # shellcheck disable=SC2086 # words
    play "a fault" 3 "rank 2 has ended" HORO_GPU_OPERATIONS=nccl $own -- either "$device" "$nccl"
    played=$((played + 1))
  done
done
echo "$played faults played"
echo "$failed failures"
[ "$failed" = 0 ]
