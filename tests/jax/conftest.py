# SPDX-License-Identifier: Apache-2.0
"""The tests of horo.jax run like those of tests/python, whose support they use."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python", "support"))
os.environ["JAX_PLATFORMS"] = "cpu"

from job_tests import (  # noqa: E402, F401
    checked,
    checked_file,
    pytest_generate_tests,
    pytest_runtest_logreport,
    pytest_sessionfinish,
)
