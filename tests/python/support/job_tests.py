# SPDX-License-Identifier: Apache-2.0
"""Runs jobs/<name>.py, which holds checks, for a test file in the same folder as `jobs`. The test file
names the job (JOB) and the numbers of ranks (RANKS)."""

import os

import pytest

import checks
import job
import tested

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


def path_of(module):
    """The file of a test module's job."""
    return os.path.join(os.path.dirname(module.__file__), "jobs", module.JOB + ".py")


@pytest.fixture(scope="session")
def checked_file(tmp_path_factory):
    """checked_file(path, ranks): the results of a job on `ranks` ranks, which runs once."""
    done = {}

    def ask(path, ranks):
        if (path, ranks) not in done:
            name = os.path.splitext(os.path.basename(path))[0]
            directory = tmp_path_factory.mktemp(f"{name}_{ranks}")
            done[path, ranks] = job.Checks(path, ranks, directory)
        return done[path, ranks]

    return ask


@pytest.fixture
def checked(checked_file, request):
    """checked(name, ranks): like checked_file, for a job of the test's folder."""
    folder = os.path.join(os.path.dirname(request.module.__file__), "jobs")
    return lambda name, ranks: checked_file(os.path.join(folder, name + ".py"), ranks)


def pytest_generate_tests(metafunc):
    """A test with the arguments `check` and `ranks` runs for every check of its JOB, on its RANKS or
    on HORO_TEST_RANKS ranks."""
    if {"check", "ranks"} <= set(metafunc.fixturenames):
        only = os.environ.get("HORO_TEST_RANKS")
        cases = [
            (ranks, name)
            for ranks in ([int(only)] if only else metafunc.module.RANKS)
            for name in checks.check_names(path_of(metafunc.module)) + ["clean_end"]
        ]
        metafunc.parametrize(("ranks", "check"), cases)
