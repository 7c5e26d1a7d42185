# SPDX-License-Identifier: Apache-2.0
"""The example reaches its accuracy, and the same one whatever the number of ranks."""

import os
import re

from job import run

EXAMPLE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "torch_digits.py"
)


def test_digits_on_1_2_and_4_ranks():
    found = []
    for ranks in (1, 2, 4):
        done = run(ranks, [EXAMPLE])
        assert done.code == 0, done.output
        says = re.search(rf"{ranks} rank\(s\): test accuracy ([\d.]+) %, \d+ images/s", done.output)
        assert says, done.output
        found.append(float(says.group(1)))
    assert min(found) >= 96.0, found
    assert max(found) - min(found) <= 1.5, found
