# SPDX-License-Identifier: Apache-2.0
"""A training goes on from its last commit when a rank is lost inside a compiled program."""

import os

import job

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "elastic.py")


def test_a_training_goes_on_after_a_loss():
    done = job.run(2, [PROGRAM], options=("--min-np", "1"))
    assert done.code == 0, done.output
    assert "result 30.0 in generation 2 of 1 rank(s)" in done.output, done.output
