# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch on the software device; the way between the ranks is HORO_GPU_OPERATIONS."""

JOB = "torch_device"
RANKS = (2, 3)


def test_job(checked, ranks, check):
    checks = checked(JOB, ranks)
    if check == "clean_end":
        checks.require_clean_end()
    else:
        checks.require(check)
