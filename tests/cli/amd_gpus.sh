#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a host whose kernel lists GPUs of AMD, horo discover shows them, and --gpus auto gives each rank one. The kernel's files are
# made up, and shown to these programs only.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

if ! unshare -m true 2>/dev/null; then
  echo "a user that may not mount cannot run this test"
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

# on_amd COMMAND...: runs COMMAND where the kernel lists these GPUs.
on_amd() {
  # shellcheck disable=SC2016 # for the inner shell
  unshare -m bash -c 'mount --bind "$0" /sys/class && exec "$@"' "$scratch/class" "$@"
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
