#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a host whose kernel lists GPUs of AMD, horo discover and horo top show them, --gpus auto gives each rank one, and a report names
# one that fails. The kernel's files are made up, and shown to these programs only.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

if ! unshare -m true 2>/dev/null; then
  echo "a user that may not mount cannot run this test"
  exit 77
fi
if [ ! -e /sys/bus/pci/devices ] || [ ! -e /dev/kmsg ]; then
  echo "this host has no place for such files"
  exit 77
fi
if [ -e /proc/driver/nvidia ] || [ -e /sys/class/kfd ]; then
  echo "this host has GPUs of its own"
  exit 77
fi
# Entries of /sys/class are relative links, which stay valid there.
mkdir "$scratch/class"
cp -a /sys/class/. "$scratch/class" 2>/dev/null
nodes=$scratch/class/kfd/kfd/topology/nodes
mkdir -p "$nodes"/{0,1,2}/mem_banks/0
printf 'cpu_cores_count 64\nsimd_count 0\n' >"$nodes/0/properties"
printf 'simd_count 440\nlocation_id 49408\ngfx_target_version 90010\nunique_id 7\n' >"$nodes/1/properties"
printf 'simd_count 440\nlocation_id 50688\ngfx_target_version 90402\nunique_id 8\n' >"$nodes/2/properties"
printf 'heap_type 1\nsize_in_bytes 68719476736\n' >"$nodes/1/mem_banks/0/properties"

for device in 0000:c1:00.0 0000:c6:00.0; do
  mkdir -p "$scratch/devices/$device/hwmon/hwmon1"
  echo 42 >"$scratch/devices/$device/gpu_busy_percent"
  echo 61000 >"$scratch/devices/$device/hwmon/hwmon1/temp1_input"
done
: >"$scratch/kmsg"

# on_amd COMMAND...: runs COMMAND where the kernel lists these GPUs.
on_amd() {
  # shellcheck disable=SC2016 # for the inner shell
  unshare -m bash -c 'mount --bind "$0/class" /sys/class && mount --bind "$0/devices" /sys/bus/pci/devices &&
    mount --bind "$0/kmsg" /dev/kmsg && exec "$@"' "$scratch" "$@"
}

try on_amd horo discover
expect "exit code" "$code" 0
expect_in "survey" "$out" "driver     AMD amdgpu, for ROCm"
expect_in "survey" "$out" "GPU        0: gfx90a, 0000:c1:00.0, 0.0 GiB of 64.0 GiB used"
expect_in "survey" "$out" "GPU        1: gfx942, 0000:c6:00.0"
try on_amd horo discover --json
python3 - "$scratch/out" <<'PY' || fail "the survey's JSON lacks the GPUs"
import json, sys
gpus = json.load(open(sys.argv[1]))["machine"]["amd"]["gpus"]
assert [gpu["uuid"] for gpu in gpus] == ["GPU-0000000000000007", "GPU-0000000000000008"], gpus
assert gpus[0]["memory_bytes"] == 64 << 30 and gpus[1]["target"] == "gfx942", gpus
PY
try on_amd horo check-build
expect_in "table" "$out" "AMD driver   amdgpu, with 2 GPUs; 0: gfx90a; 1: gfx942"
# shellcheck disable=SC2016 # for the ranks' shell
try on_amd horo run -np 2 --tag off --gpus auto sh -c 'echo "${HIP_VISIBLE_DEVICES-unset} ${CUDA_VISIBLE_DEVICES-unset}"'
expect "GPUs of the ranks" "$(sort <<<"$out")" "0 unset
1 unset"

# A job whose rank fails after a GPU has failed.
# shellcheck disable=SC2016 # for the rank's shell
on_amd timeout 100 horo run -np 1 --tag off sh -c 'echo "$HORO_JOB_ID" >"$0/id.new" && mv "$0/id.new" "$0/id"
  until [ -e "$0/stop" ]; do sleep 0.05; done; exit 4' "$scratch" >"$scratch/job" 2>&1 &
job=$!
running() {
  kill -0 $job 2>/dev/null || fail "the job has ended: $(cat "$scratch/job")"
  sleep 0.05
}
until [ -s "$scratch/id" ]; do running; done
until
  try on_amd horo top --once --json "$(cat "$scratch/id")"
  grep -q '"GPU-0000000000000008"' "$scratch/out"
do running; done
python3 - "$scratch/out" <<'PY' || fail "horo top lacks the GPUs of AMD"
import json, sys
gpus = json.load(open(sys.argv[1]))["gpus"]
assert [(gpu["index"], gpu["name"], gpu["busy_percent"], gpu["celsius"]) for gpu in gpus] == [(0, "gfx90a", 42, 61), (1, "gfx942", 42, 61)], gpus
assert gpus[0]["memory_bytes"] == 64 << 30, gpus
PY
# The watch may begin after the rank; what was said before it does not count.
until grep -q "the kernel's log says" "$scratch/job"; do
  printf "4,7,1,-;amdgpu 0000:c6:00.0: amdgpu: GPU reset begin!\n" >>"$scratch/kmsg"
  running
done
touch "$scratch/stop"
wait $job
expect "exit code" $? 4
expect_in "report" "$(cat "$scratch/job")" "exit code 4; GPU 1 (GPU-0000000000000008): the kernel's log says 'GPU reset begin!' (it is reset)"
