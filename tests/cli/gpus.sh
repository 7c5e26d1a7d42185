#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The GPUs that the driver's management library knows: in horo discover, in horo check-build, and in the report of a rank that
# failed when a GPU of its host had failed. A library stands in for NVIDIA's.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

export HORO_NVML_LIBRARY=$HORO_BIN/../tests/horo-nvml-standin.so

export HORO_NVML_STANDIN="gpus=4 mig=1 lost=2 ecc=3 links=1"
try horo discover
expect "exit code" "$code" 0
expect_in "survey" "$out" "driver     NVIDIA 580.65.06, for CUDA up to 13.0"
expect_in "survey" "$out" "0: NVIDIA Stand-in, 00000000:10:00.0, 20.0 GiB of 80.0 GiB used, 42 % busy, 2 NVLinks to GPU 1"
expect_in "survey" "$out" "2 NVLinks to GPU 2, 2 MIG slices"
expect_in "survey" "$out" "GPU 2 (GPU-standin-2) cannot be used: it has fallen off the bus"
expect_in "survey" "$out" "5 uncorrected memory errors"
try horo discover --json
python3 - "$scratch/out" <<'PY' || fail "the survey in JSON does not show the GPUs"
import json, sys
nvidia = json.load(open(sys.argv[1]))["machine"]["nvidia"]
assert nvidia["cuda"] == "13.0" and len(nvidia["gpus"]) == 4, nvidia
first, sliced, lost, faulty = nvidia["gpus"]
assert first["used_bytes"] == 20 << 30 and first["nvlinks"] == [{"peer": "GPU 1", "links": 2}], first
assert sliced["mig_slices"] == ["MIG-standin-999", "MIG-standin-1000"], sliced
assert "fallen off the bus" in lost["problem"] and faulty["uncorrected_errors"] == 5, (lost, faulty)
PY

try horo check-build
expect_in "table" "$out" "[X] driver       NVIDIA 580.65.06, for CUDA up to 13.0, with 4 GPUs; GPU 2 (GPU-standin-2) cannot be used"
HORO_NVML_STANDIN="gpus=1 cuda=11020" try horo check-build
expect_in "table of an old driver" "$out" "[ ] driver       NVIDIA 580.65.06, for CUDA up to 11.2, with 1 GPUs; Horo needs a driver for CUDA 11.4 or later"
HORO_NVML_STANDIN="init=9" try horo check-build
expect_in "table without the kernel's module" "$out" "[ ] driver       NVIDIA's driver is installed but not running"
HORO_NVML_STANDIN="init=18" try horo check-build
expect_in "table after an update" "$out" "[ ] driver       NVIDIA's driver was updated and its kernel module was not"
HORO_NVML_LIBRARY=/nowhere/libnvidia-ml.so.1 try horo check-build
expect_in "table without a driver" "$out" "[ ] driver       there is no /nowhere/libnvidia-ml.so.1; it comes with NVIDIA's driver"

# The rank fails when its agent has told of the GPU.
export HORO_NVML_STANDIN="gpus=2 xid=1"
# shellcheck disable=SC2016
try horo run -np 1 --json-report "$scratch/report" sh -c 'until grep -q Xid "$0"; do sleep 0.05; done; exit 3' "$scratch/err"
expect "exit code" "$code" 3
expect_in "report" "$err" "exit code 3; GPU 1 (GPU-standin-1) reported Xid 79 (it has fallen off the bus)"
expect_in "report in JSON" "$(cat "$scratch/report")" '"gpu_faults": "GPU 1 (GPU-standin-1) reported Xid 79'

# A rank that fails where no GPU did.
HORO_NVML_STANDIN="gpus=2" try horo run -np 1 sh -c 'exit 3'
case $err in *Xid*) fail "a GPU that works is in the report" ;; esac
