# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Two test hosts with software devices: source this behind lib.sh. The ranks of these tests are tests/gpu_rank.
# shellcheck disable=SC2034 # for the script that sources this
[ -x "$HORO_BIN/../tests/gpu_rank" ] || skip "built without the software device"
on_hosts 2
tests=$(cd "$HORO_BIN/../tests" && pwd)
export HORO_GPU_DRIVER=$tests/horo-software-device.so HORO_GPU_NCCL=$tests/horo-software-nccl.so

kernels=HORO_GPU_KERNELS=$HORO_SOURCE/tests/software_device/software_kernels
# Each host has a version of NCCL of its own, so that it cannot connect them.
# shellcheck disable=SC2016 # the rank's
versions=(sh -c 'HORO_SOFTWARE_NCCL="version=2280$(hostname | tr -d h) $PLAN" exec "$@"' versions)
