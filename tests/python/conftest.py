# SPDX-License-Identifier: Apache-2.0
"""Each jobs/<name>.py holds checks. A test file names such a job and the numbers of ranks."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "support"))

import checks  # noqa: E402
import job  # noqa: E402
import tested  # noqa: E402

COUNTS = {}  # of each test file: [passed, failed]


def pytest_runtest_logreport(report):
    counts = COUNTS.setdefault(report.fspath, [0, 0])
    counts[0] += report.when == "call" and report.passed
    counts[1] += report.failed


def pytest_sessionfinish(session):
    """Notes the versions that were tested. A run of some tests of a file says nothing about the file."""
    folder, chosen = os.environ.get("HORO_TESTED"), session.config.option
    if folder and not chosen.keyword and not any("::" in name for name in session.config.args):
        for path, counts in COUNTS.items():
            tested.write(folder, path, *counts)


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
