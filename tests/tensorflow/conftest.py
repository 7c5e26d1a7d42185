# SPDX-License-Identifier: Apache-2.0
"""The tests of horo.tensorflow and horo.keras run like those of tests/python, whose support they use."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python", "support"))
sys.path.insert(0, os.path.join(HERE, "support"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # the same order of sums in all programs

from job_tests import (  # noqa: E402, F401
    checked,
    checked_file,
    pytest_generate_tests,
    pytest_runtest_logreport,
    pytest_sessionfinish,
)
