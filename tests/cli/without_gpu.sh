#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a host without a GPU, no process of a job maps a library of GPUs: launcher, agent, guards, ranks in C and in PyTorch, and horo
# top. Libraries that PyTorch itself brings and maps do not count.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
if [ -d /proc/driver/nvidia/gpus ] || [ -e /dev/kfd ]; then
  echo "skipped: this host has a GPU"
  exit 77
fi
unset CUDA_VISIBLE_DEVICES
libraries='lib(cuda|cudart|nccl|nvidia-ml|amdhip64|rccl|rocm_smi64|amd_smi)\.so|horo-(cuda|nccl)\.so'

# running: fails unless the job still runs after a short time.
running() {
  kill -0 $job 2>/dev/null || fail "the job has ended: $(cat "$scratch/job")"
  sleep 0.05
}

# descendants PID: PID and all processes that it has started, and so on.
descendants() {
  local child children
  echo "$1"
  read -ra children < <(cat /proc/"$1"/task/*/children 2>/dev/null)
  for child in "${children[@]}"; do descendants "$child"; done
}

# check_maps: none of the job's processes has mapped a library of GPUs, but where the frameworks keep theirs. $checked lists the
# programs that were looked at.
check_maps() {
  local pid mapped
  checked=
  for pid in $(descendants $job); do
    mapped=$(grep -vE '/(site|dist)-packages/' "/proc/$pid/maps" 2>/dev/null | grep -oE "[^ /]*($libraries)[^ ]*" | sort -u)
    [ -z "$mapped" ] || fail "$(tr '\0' ' ' <"/proc/$pid/cmdline") has mapped $mapped"
    checked+=" $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
  done
}

# check_searches: no process has searched for one: the loader has written down all searches. Ranks look whether the program has
# loaded CUDA's driver, and do not load it themselves.
check_searches() {
  local searched
  compgen -G "$scratch/loader.*" >/dev/null || fail "the loader has written nothing"
  searched=$(grep -hE "find library=($libraries)" "$scratch"/loader.* | grep -v 'find library=libcuda\.so\.1 ' | sort -u)
  [ -z "$searched" ] || fail "processes have searched for $searched"
}

# Ranks in C: one collective has ended, and another is in progress.
rank=$HORO_BIN/../tests/stall_rank
# shellcheck disable=SC2016 # for the rank's shell
LD_DEBUG=libs LD_DEBUG_OUTPUT=$scratch/loader timeout 100 horo run -np 2 sh -c 'echo "$HORO_JOB_ID" >"$1"; shift; exec "$@"' sh "$scratch/id" \
  "$rank" reduce=first large=second only=0 "touch=$scratch/done" only=1 "until=$scratch/stop" reduce=third >"$scratch/job" 2>&1 &
job=$!
until [ -e "$scratch/done" ]; do running; done
check_maps
for program in horo-run horo-agent stall_rank; do expect_in "programs of the job" "$checked" "$program"; done
LD_DEBUG=libs LD_DEBUG_OUTPUT=$scratch/loader try horo top --once --json "$(cat "$scratch/id")"
expect "exit code of horo top" "$code" 0
touch "$scratch/stop"
wait $job
expect "exit code of ranks in C" $? 0
check_searches

# Ranks in PyTorch.
cat >"$scratch/train.py" <<'PY'
import os
import sys
import time

import torch

import horo.torch as horo

horo.init()
model = torch.nn.Linear(8, 2)
optimizer = horo.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
horo.broadcast_parameters(model.state_dict(), root_rank=0)
step = 0
while not os.path.exists(sys.argv[1] + "/stop"):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    step += 1
    if step == 3 and horo.rank() == 0:
        open(sys.argv[1] + "/done", "w").close()
    if horo.allreduce(torch.tensor([float(os.path.exists(sys.argv[1] + "/stop"))]), name="end", op=horo.Sum) > 0:
        break
    time.sleep(0.01)
horo.shutdown()
PY
tried=0
for python in ${HORO_PYTHON:+"$HORO_PYTHON"} /usr/bin/python3; do
  PYTHONPATH=$HORO_BIN/../python "$python" -c 'import torch, horo.torch' 2>/dev/null || continue
  tried=1
  rm -f "$scratch/done" "$scratch/stop"
  PYTHONPATH=$HORO_BIN/../python timeout 100 horo run -np 2 "$python" "$scratch/train.py" "$scratch" >"$scratch/job" 2>&1 &
  job=$!
  until [ -e "$scratch/done" ]; do running; done
  check_maps
  expect_in "programs of the job" "$checked" "train.py"
  touch "$scratch/stop"
  wait $job
  expect "exit code of ranks in PyTorch: $(cat "$scratch/job")" $? 0
done
[ "$tried" = 1 ] || echo "PyTorch was not tried: no Python here has it"
