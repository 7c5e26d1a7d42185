# SPDX-License-Identifier: Apache-2.0
"""Errors and moves between the steps of an optimizer, on the software device."""

JOB = "torch_device_steps"
RANKS = (2,)


def test_job(checked, ranks, check):
    checks = checked(JOB, ranks)
    if check == "clean_end":
        checks.require_clean_end()
    else:
        checks.require(check)
