#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tensors in device memory over several hosts, by NCCL and through host memory, on software devices.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/hosts/gpu_lib.sh
. "$(dirname "$0")/gpu_lib.sh"

# The hosts' /dev/shm differ, so the software NCCL meets in a folder that they share.
# seeds OPERATIONS COUNT [VARIABLE=VALUE...]: sets that overlap within a host and across both.
seeds() {
  local operations=$1 count=$2
  shift 2
  try timeout 100 horo run -H h1:2,h2:2 --tag off --gpu-operations "$operations" --log-level info env GPU_RANK_DEVICES=1 \
    HORO_SOFTWARE_DEVICE=devices=2 HORO_SOFTWARE_NCCL_FOLDER="$scratch" "$@" "$tests/gpu_rank" seeds 1 "$count"
  expect "exit code by $operations ($err)" "$code" 0
  expect_in "the end by $operations" "$out" "$count seeds agree"
}
seeds nccl 4 HORO_SOFTWARE_NCCL=room=1
expect_in "the way" "$err" "4 ranks move tensors in device memory by nccl and staged"
seeds nccl 4 HORO_SOFTWARE_NCCL="room=2 remote=1" HORO_NUM_NCCL_STREAMS=2
seeds staged 4
# Rank 0 has joined, and no rank of the other host has.
# shellcheck disable=SC2016 # the rank's
try timeout 100 horo run -H h1:2,h2:2 --tag off --gpu-operations nccl env GPU_RANK_DEVICES=1 HORO_SOFTWARE_NCCL_FOLDER="$scratch" \
  sh -c 'HORO_SOFTWARE_DEVICE="devices=2 host=$(hostname | tr -d h)" exec "$0" joins later' "$tests/gpu_rank"
expect "exit code with a rank that has joined ($err)" "$code" 0
try timeout 100 horo run -H h1:2,h2:1 --tag off --gpu-operations staged env GPU_RANK_DEVICES=1 HORO_SOFTWARE_DEVICE=devices=2 "$tests/gpu_rank" adasum
expect "exit code of Adasum ($err)" "$code" 0
expect_in "the end of Adasum" "$out" "all is well"
nothing_left h1 h2
