# SPDX-License-Identifier: Apache-2.0
"""examples/jax/digits.py runs unchanged on one rank and on four, with the same result."""

import os
import re

import job

EXAMPLE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "jax", "digits.py"
)


def accuracy(ranks):
    done = job.run(ranks, [EXAMPLE])
    assert done.code == 0, done.output
    found = re.search(rf"{ranks} rank\(s\): test accuracy ([0-9.]+) %", done.output)
    assert found, done.output
    return float(found.group(1))


def test_one_rank_and_four_reach_the_same_accuracy():
    alone, four = accuracy(1), accuracy(4)
    assert alone > 95 and abs(alone - four) < 1, (alone, four)
