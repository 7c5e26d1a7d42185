# SPDX-License-Identifier: Apache-2.0
"""Ranks whose tensors are on two software devices."""

JOB = "torch_two_devices"
RANKS = (2, 3)


def test_job(checked, ranks, check):
    checks = checked(JOB, ranks)
    if check == "clean_end":
        checks.require_clean_end()
    else:
        checks.require(check)
