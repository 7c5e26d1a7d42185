#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sums in device memory that go by hosts, while a rank is lost or a device fails. SEEDS=N, of more than 4, also has single calls fail.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/hosts/gpu_lib.sh
. "$(dirname "$0")/gpu_lib.sh"
count=${SEEDS:-4}

# run_by BY SCENARIO [ARGUMENT...]: three ranks on two hosts, with BY inside the hosts and all sums by hosts.
run_by() {
  local by=$1
  shift
  try timeout 100 horo run -H h1:2,h2:1 --tag off env GPU_RANK_DEVICES=1 HORO_SOFTWARE_DEVICE=devices=2 "$kernels" \
    HORO_HIERARCHICAL_ALLREDUCE=1 HORO_GPU_OPERATIONS="$by" PLAN= "${versions[@]}" "$tests/gpu_rank" "$@"
}
for by in nccl ipc; do
  # A rank is lost while its device hangs.
  run_by $by loss device
  expect "exit code of a loss by $by ($err)" "$code" 3
  expect_in "the word of the loss by $by" "$out" "rank 2 was told"
  # A device fails: the first copy or launch behind the submission, or a later error of the device.
  for fault in fail=cuMemcpyAsync@3:719 fail=cuEventRecord@4:719 async=9:700; do
    run_by $by breaks "$fault" - ""
    expect "exit code of $fault by $by ($err)" "$code" 0
    expect_in "the word of $fault by $by" "$out" "rank 2 was told"
  done
done
# A call fails, whichever it is: with SEEDS.
for call in cuMemcpyAsync cuEventRecord cuStreamWaitEvent cuEventCreate cuMemAlloc cuMemHostAlloc cuLaunchKernel ncclGroupEnd; do
  for ((number = 1; number <= 5 && count > 4; ++number)); do
    device="fail=$call@$number:719" nccl=-
    case $call in nccl*) device=- nccl="fail=$call@$number:1" ;; esac
    run_by nccl either "$device" "$nccl"
    expect "exit code of $call $number ($err)" "$code" 0
    expect_in "the end of $call $number" "$out" "rank 2 has ended"
  done
done
nothing_left h1 h2
