# SPDX-License-Identifier: Apache-2.0
"""The examples run unchanged on one rank and on four."""

import os
import re

import pytest

import job

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


@pytest.mark.parametrize("ranks", (1, 4))
@pytest.mark.parametrize("name", ("tensorflow/tensorflow_digits.py", "keras/keras_digits.py"))
def test_example(name, ranks):
    done = job.run(ranks, [os.path.join(EXAMPLES, name)])
    assert done.code == 0, done.output
    found = re.search(rf"{ranks} rank\(s\): test accuracy ([\d.]+) %", done.output)
    assert found and float(found.group(1)) > 94, done.output
