#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/gpu-pack and scripts/gpu-check: they say what is missing on a machine without a GPU, and run over the software
# device, where no figure counts as reached.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

if [ ! -x "$HORO_BIN/bench_gpu" ]; then
  echo "skipped: this build has no programs that measure (HORO_BENCH=OFF)"
  exit 77
fi
root=$HORO_SOURCE
build=$(cd "$HORO_BIN/.." && pwd)
export HORO_BUILD=$build
python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1], "w").writestr("horo/__init__.py", "")' "$scratch/horo-0.whl"

try "$root/scripts/gpu-pack" "$scratch/none.whl" "$scratch/folder"
expect "exit code without a wheel" "$code" 1
expect_in "error" "$err" "there is no wheel"
try "$root/scripts/gpu-pack" "$scratch/horo-0.whl" "$scratch/folder"
expect "exit code of gpu-pack" "$code" 0
expect_in "workloads" "$(cut -c1-30 "$scratch/folder/workloads")" "resnet50 1000 2048000"
expect "tensors of ResNet-50" "$(grep resnet50 "$scratch/folder/workloads" | wc -w)" 162
truncate -s 61M "$scratch/horo-0.whl"
try "$root/scripts/gpu-pack" "$scratch/horo-0.whl" "$scratch/large"
expect "exit code of a folder that is too large" "$code" 1
expect_in "error" "$err" "at most 62914560 are allowed"

HORO_GPU_DRIVER=/nowhere/libcuda.so.1 HORO_PYTHON=/nowhere/python3 try "$scratch/folder/gpu-check"
expect "exit code without a GPU" "$code" 2
expect_in "output" "$out" "missing: a GPU: /nowhere/libcuda.so.1 cannot be loaded"
expect_in "output" "$out" "missing: torch in /nowhere/python3"
expect_in "output" "$out" "gpu-check on no GPU"

echo "resnet50 3 70 1000" >"$scratch/folder/workloads"
echo "tiny 256 256" >>"$scratch/folder/workloads"
export HORO_GPU_DRIVER=$build/tests/horo-software-device.so HORO_GPU_KERNELS=$root/tests/software_device/software_kernels
try "$scratch/folder/gpu-check" --only pack,ipc --json "$scratch/figures"
expect "exit code over the software device" "$code" 0
expect_in "output" "$out" "THE SOFTWARE DEVICE: these figures show that the script runs, and nothing about a GPU"
expect_in "output" "$out" "ran, on the software device"
case $out in *"  reached"* | *"NOT REACHED"*) fail "a figure of the software device counts" ;; esac
python3 - "$scratch/figures" <<'PY' || fail "the figures are not all there"
import json, sys
found = json.load(open(sys.argv[1]))
assert found["gpu"]["software"] is True, found
names = {figure["what"] for row in found["rows"].values() for figure in row["figures"]}
assert {"pack resnet50", "unpack tiny against a copy", "ipc all-reduce of 4 B", "device copy of 1048576 B"} <= names, names
assert not any(row["problem"] for row in found["rows"].values()), found
PY
CUDA_VISIBLE_DEVICES="" try "$scratch/folder/gpu-check" --only pack
expect "exit code with hidden GPUs" "$code" 2
expect_in "output" "$out" "missing: a GPU: cuInit returns 100: the driver does not run, or CUDA_VISIBLE_DEVICES hides all GPUs"
