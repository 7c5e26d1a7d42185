#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks run on the cores, and see the GPUs, that they were bound to. Real ranks print what the kernel says about them.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER

# allowed: the hardware threads on which this shell's children may run, one per line.
allowed() {
  taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done
}
mapfile -t cpus < <(allowed)
say_cpus='sed -n "s/^Cpus_allowed_list:\t//p" /proc/self/status'

# Unbound ranks may run on every hardware thread that the launcher may use.
own=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)
try horo run -np 2 --tag off --bind-to none sh -c "$say_cpus"
expect "hardware threads of unbound ranks" "$out" "$own
$own"

# With one rank per core, the ranks' threads are disjoint and together cover what this process may use.
if [ "${#cpus[@]}" -ge 2 ]; then
  try taskset -c "${cpus[0]},${cpus[1]}" horo run -np 2 --tag off --bind-to core sh -c "$say_cpus"
  if [ "$code" = 0 ]; then
    expect "hardware threads of two ranks on two cores" "$(sort -n <<<"$out")" "${cpus[0]}
${cpus[1]}"
  else
    # Two hardware threads of one core count as one core.
    expect_in "error" "$err" "2 ranks want a core each, 1 cores may be used"
  fi
fi

# The affinity of the job itself limits the ranks.
try taskset -c "${cpus[0]}" horo run -np 2 --tag off --bind-to numa sh -c "$say_cpus"
expect "exit code" "$code" 0
expect "hardware threads under taskset" "$out" "${cpus[0]}
${cpus[0]}"

# The plan shows the binding before the run.
try taskset -c "${cpus[0]}" horo run -np 1 --bind-to core --dry-run true
expect_in "plan" "$out" "host       localhost: 1 ranks, 0; binding core"
expect_in "plan" "$out" "0 of 1       0 of 1  hardware threads ${cpus[0]}"
try horo run -np 1 --dry-run true
expect_in "plan" "$out" "binding none, as it has one rank"
try horo run -np 4 -H a:2,b:2 --bind-to numa --dry-run true
expect_in "plan" "$out" "host       b: 2 ranks, 2-3; binding numa, as its agent finds it"
refused "host 'localhost': 2 ranks want a core each, 1 cores may be used; --bind-to numa or none shares them" \
  taskset -c "${cpus[0]}" horo run -np 2 --bind-to core true
refused "bind.to: 'socket' (flag --bind-to) must be one of: auto, core, numa, gpu, none" horo run -np 1 --bind-to socket true

# With --bind-to gpu each rank runs on the cores near its GPU, whatever CUDA_VISIBLE_DEVICES calls it. A library stands in for
# NVIDIA's.
if [ ! -d /proc/driver/nvidia/gpus ] && [ "${#cpus[@]}" -ge 2 ]; then
  export HORO_NVML_LIBRARY=$HORO_BIN/../tests/horo-nvml-standin.so
  near="cpu0=${cpus[1]} cpu1=${cpus[0]}"
  say_both="printf '%s ' \"\$HORO_LOCAL_RANK\"; $say_cpus"
  swapped="0 ${cpus[1]}
1 ${cpus[0]}"
  HORO_NVML_STANDIN="gpus=2 $near" try horo run -np 2 --tag off --bind-to gpu sh -c "$say_both"
  expect "hardware threads near the GPUs" "$(sort <<<"$out")" "$swapped"
  for names in 0,1 GPU-standin-0,GPU-standin-1 MIG-GPU-standin-0/3/0,1; do
    CUDA_VISIBLE_DEVICES=$names HORO_NVML_STANDIN="gpus=2 $near" try horo run -np 2 --tag off --bind-to gpu sh -c "$say_both"
    expect "hardware threads near the GPUs '$names'" "$(sort <<<"$out")" "$swapped"
  done
  CUDA_VISIBLE_DEVICES=MIG-standin-1000,0 HORO_NVML_STANDIN="gpus=2 mig=1 $near" try horo run -np 2 --tag off --bind-to gpu sh -c "$say_both"
  expect "hardware threads near a slice and a GPU" "$(sort <<<"$out")" "0 ${cpus[0]}
1 ${cpus[1]}"
  # The threads stay within what the job may use, and GPUs that no rank gets do not matter.
  HORO_NVML_STANDIN="gpus=2 cpu0=${cpus[0]}" try taskset -c "${cpus[0]}" horo run -np 1 --bind-to gpu --dry-run true
  expect_in "plan" "$out" "hardware threads ${cpus[0]}"
  HORO_NVML_STANDIN="gpus=2 $near" refused "--bind-to gpu: GPU 0 is near hardware threads ${cpus[1]}, and ranks may run on ${cpus[0]} only" \
    taskset -c "${cpus[0]}" horo run -np 1 --bind-to gpu true
  HORO_NVML_STANDIN="gpus=2" refused "the driver does not tell which cores are near GPU 0; --bind-to numa, core or none" \
    horo run -np 1 --bind-to gpu true
  for names in 7 GPU-nothing MIG-nothing nonsense; do
    CUDA_VISIBLE_DEVICES=$names HORO_NVML_STANDIN="gpus=2 $near" \
      refused "CUDA_VISIBLE_DEVICES names '$names', which is none of the 2 GPUs of this host" horo run -np 1 --bind-to gpu true
  done
  CUDA_VISIBLE_DEVICES='' HORO_NVML_STANDIN="gpus=2 $near" refused "--bind-to gpu finds no GPU: CUDA_VISIBLE_DEVICES is ''" horo run -np 1 --bind-to gpu true
  CUDA_VISIBLE_DEVICES=GPU-a HORO_NVML_STANDIN="init=9" refused "it is not known where GPU GPU-a is: NVIDIA's driver is installed but not running" \
    horo run -np 1 --bind-to gpu true
  unset HORO_NVML_LIBRARY
fi

# Each local rank gets one of the visible GPUs. Without --gpus the variable stays unchanged.
say_gpus='echo "${CUDA_VISIBLE_DEVICES-unset}"'
CUDA_VISIBLE_DEVICES=4,5 try horo run -np 2 --tag off --gpus auto sh -c "$say_gpus"
expect "GPUs of the ranks" "$(sort <<<"$out")" "4
5"
CUDA_VISIBLE_DEVICES=4,5 try horo run -np 2 --tag off sh -c "$say_gpus"
expect "GPUs of the ranks" "$out" "4,5
4,5"
# AMD's variables are distributed alike: HIP's own, and by number what ROCm's names.
say_hip='echo "${HIP_VISIBLE_DEVICES-unset} ${CUDA_VISIBLE_DEVICES-unset}"'
HIP_VISIBLE_DEVICES=4,5 try horo run -np 2 --tag off --gpus auto sh -c "$say_hip"
expect "AMD GPUs of the ranks" "$(sort <<<"$out")" "4 unset
5 unset"
ROCR_VISIBLE_DEVICES=GPU-7,GPU-3 try horo run -np 2 --tag off --gpus auto sh -c "$say_hip \$ROCR_VISIBLE_DEVICES"
expect "AMD GPUs of the ranks in ROCm's list" "$(sort <<<"$out")" "0 unset GPU-7,GPU-3
1 unset GPU-7,GPU-3"
if [ ! -d /proc/driver/nvidia/gpus ]; then
  try horo run -np 2 --tag off --gpus auto sh -c "$say_gpus"
  expect "GPUs where there are none" "$out" "unset
unset"
  try horo run -np 2 --gpus auto --dry-run true
  expect_in "plan" "$out" "; no GPU"
  refused "host 'localhost': --bind-to gpu finds no GPU" horo run -np 2 --bind-to gpu true
fi
