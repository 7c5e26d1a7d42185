# SPDX-License-Identifier: Apache-2.0
"""Each jobs/<name>.py holds checks. A test file names such a job and the numbers of ranks."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "support"))

import checks  # noqa: E402
import job  # noqa: E402


@pytest.fixture(scope="session")
def checked(tmp_path_factory):
    """checked(name, ranks): the results of a job on `ranks` ranks, which runs once."""
    done = {}

    def ask(name, ranks):
        if (name, ranks) not in done:
            directory = tmp_path_factory.mktemp(f"{name}_{ranks}")
            path = os.path.join(HERE, "jobs", name + ".py")
            done[name, ranks] = job.Checks(path, ranks, directory)
        return done[name, ranks]

    return ask


def pytest_generate_tests(metafunc):
    """A test with the arguments `check` and `ranks` runs for every check of its JOB, on its RANKS or
    on HORO_TEST_RANKS ranks."""
    if {"check", "ranks"} <= set(metafunc.fixturenames):
        path = os.path.join(HERE, "jobs", metafunc.module.JOB + ".py")
        only = os.environ.get("HORO_TEST_RANKS")
        cases = [
            (ranks, name)
            for ranks in ([int(only)] if only else metafunc.module.RANKS)
            for name in checks.check_names(path) + ["clean_end"]
        ]
        metafunc.parametrize(("ranks", "check"), cases)
