#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sums in device memory that go by hosts: by NCCL or ipc inside each host, and through host memory between them, on software
# devices. SEEDS=N plays N seeds in each way instead of a few.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/hosts/gpu_lib.sh
. "$(dirname "$0")/gpu_lib.sh"
own="GPU_RANK_DEVICES=1 HORO_SOFTWARE_DEVICE=devices=3"
count=${SEEDS:-4}

# seeds HOSTS WAY [WORD...]: sets that overlap within a host and across both. The first one has the way.
seeds() {
  local on=$1 way=$2
  shift 2
  try timeout 100 horo run -H "$on" --tag off --log-level info env "$@" "$tests/gpu_rank" seeds 1 "$count"
  expect "exit code by '$way' ($err)" "$code" 0
  expect_in "the end by '$way'" "$out" "$count seeds agree"
  expect_in "the way" "$err" "ranks move tensors in device memory by $way"
  case $err in *"finding:"*) fail "a finding by '$way': $err" ;; esac
}

# Each device has room for one operation of NCCL at a time.
# shellcheck disable=SC2086 # words
{
  seeds h1:2,h2:2 "nccl inside each host and staged" $own PLAN=room=1 "${versions[@]}"
  expect_in "the reason" "$err" "nccl: NCCL 2.28.1 on rank 0, and 2.28.2 on rank 2"
  # The user asks for it.
  seeds h1:3,h2:2 "nccl on 2 streams inside each host and staged" $own $kernels HORO_GPU_OPERATIONS=nccl \
    HORO_HIERARCHICAL_ALLREDUCE=1 PLAN=room=2 HORO_NUM_NCCL_STREAMS=2 "${versions[@]}"
  seeds h1:2,h2:3 "ipc inside each host and staged" $kernels HORO_GPU_OPERATIONS=ipc HORO_HIERARCHICAL_ALLREDUCE=1
  # NCCL connects all devices, too, and moves what is no sum.
  seeds h1:2,h2:2 "nccl inside each host and nccl and staged" $own HORO_HIERARCHICAL_ALLREDUCE=1 \
    HORO_SOFTWARE_NCCL=room=1 HORO_SOFTWARE_NCCL_FOLDER="$scratch"
  # NCCL cannot connect the hosts, because they share no folder.
  seeds h1:2,h2:1 "nccl inside each host and staged" $own HORO_START_TIMEOUT=15
}
expect_in "the reason" "$err" "still waited for the others after 15 s"
# The user has switched it off.
try timeout 100 horo run -H h1:2,h2:2 --tag off --log-level info --no-hierarchical-allreduce env GPU_RANK_DEVICES=1 \
  HORO_SOFTWARE_DEVICE=devices=2 PLAN= "${versions[@]}" "$tests/gpu_rank" seeds 1 1
expect "exit code when it is off ($err)" "$code" 0
expect_in "the way when it is off" "$err" "by staged"
expect_in "the reason when it is off" "$err" "nccl by hosts: rank 0: hierarchical.allreduce is false"
nothing_left h1 h2
