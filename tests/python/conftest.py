# SPDX-License-Identifier: Apache-2.0
"""Each jobs/<name>.py holds checks. A test file names such a job and the numbers of ranks."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "support"))

from job_tests import (  # noqa: E402, F401
    checked,
    checked_file,
    pytest_generate_tests,
    pytest_runtest_logreport,
    pytest_sessionfinish,
)
