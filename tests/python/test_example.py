# SPDX-License-Identifier: Apache-2.0
"""The examples run and learn the same on any number of ranks."""

import os
import re

from job import run

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
ONLY = os.environ.get("HORO_TEST_RANKS")  # the older torch runs them once


def said(ranks, words, *arguments):
    """The numbers in the last line of an example, found by the groups of `words`."""
    done = run(ranks, [os.path.join(EXAMPLES, arguments[0]), *arguments[1:]])
    found = re.search(rf"{ranks} rank\(s\): {words}", done.output)
    assert done.code == 0 and found, done.output
    return [float(group) for group in found.groups()]


def test_digits_on_1_2_and_4_ranks():
    words = r"test accuracy ([\d.]+) %, \d+ images/s"
    counts = (int(ONLY),) if ONLY else (1, 2, 4)
    found = [said(ranks, words, "torch_digits.py")[0] for ranks in counts]
    assert min(found) >= 96.0, found
    assert max(found) - min(found) <= 1.5, found


def test_torch_ddp_on_1_2_and_4_ranks():
    counts = (int(ONLY),) if ONLY else (1, 2, 4)
    found = []
    for ranks in counts:
        done = run(ranks, [os.path.join(EXAMPLES, "torch_ddp.py")])
        said_right = re.search(rf"{ranks} ranks: ([\d.]+) % of the points", done.output)
        assert done.code == 0 and said_right, done.output
        found.append(float(said_right.group(1)))
    assert min(found) >= 95.0 and max(found) - min(found) <= 1.5, found


def test_text_continues_from_a_checkpoint(tmp_path):
    words = r"loss ([\d.]+) to ([\d.]+), \d+ letters/s"
    file = str(tmp_path / "checkpoint")
    first, learned = said(2, words, "torch_text.py", "--steps", "60", "--checkpoint", file)
    assert first > 3.5 and learned < 2.9, (first, learned)
    again, _ = said(2, words, "torch_text.py", "--steps", "3", "--checkpoint", file)
    assert again < learned + 0.3, (again, learned)


def test_resnet50():
    words = r"([\d.]+) images/s, ([\d.]+) to ([\d.]+) in 2 round\(s\)"
    small = ["--image", "32", "--batch", "2", "--steps", "1", "--rounds", "2", "--warm-up", "1"]
    middle, least, most = said(2, words, "torch_resnet50.py", *small)
    assert 0 < least <= middle <= most
