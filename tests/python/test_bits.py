# SPDX-License-Identifier: Apache-2.0
"""Results are the same bit by bit in every run, whatever the order of submission, the timing and the
fusion threshold."""

import os
import re

from job import HERE, run

JOB = os.path.join(HERE, "..", "jobs", "bits.py")


def bits(ranks, **environment):
    done = run(ranks, [JOB], HORO_DETERMINISTIC="1", **environment)
    assert done.code == 0, done.output
    return re.search(r"bits ([0-9a-f]{64})", done.output).group(1)


def test_results_are_equal_bit_by_bit():
    for ranks in (2, 4):
        first = bits(ranks)
        assert bits(ranks) == first
        assert bits(ranks, HORO_FUSION_THRESHOLD="0") == first
        assert bits(ranks, HORO_FUSION_THRESHOLD="4096", HORO_SHM_CHUNK="4096") == first
