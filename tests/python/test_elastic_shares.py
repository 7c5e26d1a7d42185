# SPDX-License-Identifier: Apache-2.0
"""Which samples of an epoch are left, and which steps of a round, after changes of the members."""

import random

from horo._elastic.paces import Paces
from horo._elastic.shares import Shares


# -- Shares of an epoch ------------------------------------------------------------------------------


def train_once(chance, count, size, most):
    """One epoch over a random history of the members. Returns how often each position was used in a
    step that all ranks have finished, and the number of ranks at the end."""
    shares = [Shares(count) for _ in range(size)]
    used, last = [0] * count, size
    while shares[0].left():
        parts = [one.deal(rank, size) for rank, one in enumerate(shares)]
        assert len({len(part) for part in parts}) == 1
        assert sorted(set(sum(parts, []))) == sorted(shares[0]._dealt)
        assert len(sum(parts, [])) - len(shares[0]._dealt) < size
        batch, start = chance.randint(1, 7), 0
        stop = chance.choice([None, chance.randint(0, 1 + len(parts[0]) // batch)])
        while start < len(parts[0]) and stop != 0:
            stop = stop if stop is None else stop - 1
            together = [part[start : start + batch] for part in parts]
            for position in sum(together, []):
                used[position] += 1
            for one in shares:
                one.record(batch)
            start += batch
        assert len({(one.prefix, tuple(one.extras())) for one in shares}) == 1
        # Some ranks are lost, and others come, which take the state of rank 0.
        survivors, last = chance.randint(1, size), size
        size = chance.randint(survivors, most)
        told = shares[0].prefix, shares[0].extras()
        shares = shares[:survivors] + [Shares(count, *told) for _ in range(size - survivors)]
    return used, last


def test_every_sample_is_used_once_over_all_changes():
    chance = random.Random(17)
    for _ in range(300):
        count, most = chance.randint(1, 200), chance.randint(1, 6)
        used, ranks = train_once(chance, count, chance.randint(1, most), most)
        assert min(used) >= 1 and sum(used) - count < ranks, (count, used)


def test_more_ranks_than_samples_are_left():
    shares = Shares(9, 8)
    assert [shares.deal(rank, 4) for rank in range(4)] == [[8]] * 4
    shares.record(5)
    assert shares.prefix == 9 and shares.left() == 0
    assert shares.deal(2, 4) == []


def test_batches_whose_step_did_not_end_are_left_again():
    shares = Shares(40)
    assert shares.deal(1, 2)[:3] == [1, 3, 5]
    for _ in range(3):
        shares.record(4)
    assert shares.prefix == 24
    shares.forget_after(2)
    assert shares.prefix == 16 and shares.recorded() == 2
    shares.forget_after(0)
    assert shares.prefix == 0


def test_samples_that_single_ranks_have_done_are_skipped():
    shares = Shares(10)
    shares.deal(0, 2)
    shares.record_positions([0, 1, 4, 9])
    assert shares.deal(0, 2) == [2, 5, 7] and shares.prefix == 2
    assert shares.deal(1, 2) == [3, 6, 8]
    shares.record(2)  # 2, 3, 5, 6
    assert shares.prefix == 7 and shares.left() == 2
    assert shares.deal(0, 1) == [7, 8]
    shares.record(2)
    assert shares.left() == 0
    assert Shares(10, 3, [3, 4, 8]).extras() == [8]


# -- Several optimizers ------------------------------------------------------------------------------


def test_an_optimizer_that_has_done_its_step_of_a_round_is_ahead():
    paces = Paces()
    assert paces.ahead([1, 0]) == [0, 0], "nothing is known before the first boundary"
    paces.passed([0, 0])
    assert paces.ahead([1, 0]) == [0, 0], "no round has ended yet"
    paces.passed([4, 4])
    assert paces.ahead([4, 4]) == [0, 0]
    assert paces.ahead([5, 4]) == [1, 0]
    assert paces.ahead([9, 8]) == [1, 0], "a boundary may be several rounds ago"
    assert paces.ahead([5, 5]) == [0, 0]
    assert paces.ahead([6, 4]) == [0, 0], "a round has one step of each"
    assert paces.ahead([5]) == [0]
    paces.passed([9, 9])
    paces.passed([9, 9])
    assert paces.ahead([10, 9]) == [1, 0], "a boundary without a step between tells nothing"
    paces.passed([14, 10])
    assert paces.ahead([15, 10]) == [0, 0]
    assert Paces().ahead([]) == []
