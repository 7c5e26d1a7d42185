# SPDX-License-Identifier: Apache-2.0
"""Libraries over torch.distributed: Lightning with strategy="horo", Accelerate and Hugging Face's Trainer unchanged.
Each runs only where its package is installed."""

import os
import re

import pytest

from job import run

USERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "users")


def slopes(done, ranks, words):
    """The slope that each rank has learned."""
    assert done.code == 0, done.output
    found = [float(slope) for slope in re.findall(rf"{words}: slope ([\d.-]+)", done.output)]
    assert len(found) == ranks, done.output
    return found


def require_learned(found):
    assert max(found) == min(found) and abs(found[0] - 3) < 0.2, found


@pytest.mark.parametrize("strategy", ("horo", "horovod"))
def test_lightning(strategy):
    pytest.importorskip("lightning")
    done = run(2, [os.path.join(USERS, "lightning_line.py"), strategy])
    require_learned(slopes(done, 2, "2 ranks, 32 samples, horo"))


def test_accelerate():
    pytest.importorskip("accelerate")
    done = run(2, [os.path.join(USERS, "accelerate_line.py")], options=["--torch-backend", "horo"])
    require_learned(slopes(done, 2, "2 ranks, horo"))


def test_trainer(tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    done = run(2, [os.path.join(USERS, "trainer_line.py"), str(tmp_path)], options=["--torch-backend", "horo"])
    require_learned(slopes(done, 2, "2 ranks, horo"))
