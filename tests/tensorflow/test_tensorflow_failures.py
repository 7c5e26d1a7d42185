# SPDX-License-Identifier: Apache-2.0
"""Ranks that fail, die or are interrupted inside of TensorFlow and Keras leave nobody waiting."""

import os
import re

import pytest

import job

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


def program(name):
    return os.path.join(PROGRAMS, name)


def test_a_gradient_that_fails_on_one_rank_ends_the_job():
    done = job.run(2, [program("gradient_fails.py")])
    assert done.code != 0
    assert "no gradient here" in done.output, done.output
    assert re.search("rank 0 was told: (PeerLostError|ShutDownError)", done.output), done.output
    assert "rank 1 on localhost failed first" in done.output, done.output


@pytest.mark.parametrize("backend", ("tensorflow", "jax"))
def test_a_fit_goes_on_after_a_rank_was_lost(tmp_path, backend):
    pytest.importorskip(backend)
    options = ("--min-np", "1", "--slot-restarts", "9")
    program_and_folder = [program("elastic_fit.py"), str(tmp_path)]
    done = job.run(2, program_and_folder, options=options, KERAS_BACKEND=backend)
    assert done.code == 0 and os.path.exists(tmp_path / "died"), done.output
    ends = re.findall(r"done epoch 3 of size \d result (\S+)", done.output)
    assert ends and len(set(ends)) == 1, done.output


@pytest.mark.parametrize("holds", ("variables", "model"))
def test_a_state_survives_a_killed_rank(holds):
    done = job.run(3, [program("elastic_state.py"), holds], options=("--min-np", "2"))
    assert done.code == 0, done.output
    assert done.output.count("done in generation 2 of 2 ranks") == 2, done.output


@pytest.mark.parametrize("backend", ("tensorflow", "jax", "torch"))
def test_ctrl_c_ends_a_fit(backend):
    pytest.importorskip(backend)
    done = job.interrupt(2, [program("fit_for_ever.py")], KERAS_BACKEND=backend)
    assert done.code == 130, (done.code, done.output)


def test_children_of_an_input_pipeline_do_not_disturb_a_training():
    done = job.run(2, [program("forks.py")])
    assert done.code == 0 and done.output.count("all right") == 2, done.output


def test_functions_that_run_at_the_same_time_in_another_order():
    done = job.run(2, [program("functions_at_once.py")])
    assert done.code == 0 and done.output.count("all right") == 2, done.output


def test_two_frameworks_in_one_process_do_not_disturb_each_other():
    pytest.importorskip("jax")
    done = job.run(2, [program("two_frameworks.py")])
    assert done.code == 0 and done.output.count("all right") == 2, done.output


def test_memory_that_cannot_be_had_is_an_error_of_the_op():
    """Each allocation of the module fails once."""
    failing = os.path.join(os.environ["HORO_TEST_BIN"], "..", "tests", "failing_malloc.so")
    done = job.run(1, [program("no_memory.py")], LD_PRELOAD=os.path.normpath(failing))
    assert done.code == 0 and "all right" in done.output, done.output
