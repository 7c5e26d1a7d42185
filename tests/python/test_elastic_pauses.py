# SPDX-License-Identifier: Apache-2.0
"""What rank 0 tells the launcher about the interruptions of a training."""

import pytest

import horo.torch as horo
import torch
from changing_job import Job, Recorded, run, scripted
from horo import errors
from horo._elastic import loop, pause, state as states
from horo._elastic.interrupt import HostsUpdatedInterrupt
from horo.torch import _optimizer, elastic


@pytest.fixture
def the_job(monkeypatch):
    return Job(monkeypatch)


class Listener:
    """Takes the place of the library that tells the launcher."""

    def __init__(self, monkeypatch):
        self.told = []
        monkeypatch.setattr(pause, "slow", self)

    def horo_resumed(self, stood_still, repeated):
        assert stood_still >= 0
        self.told.append(repeated)
        return 0


def lost_after(the_job, *calls):
    """A training that calls these methods of its state, and loses a rank once."""
    state = states.ObjectState(step=0)
    losses = [errors.PeerLostError("rank 1")]

    def train(given):
        for call in calls:
            getattr(given, call)()
        if losses:
            raise losses.pop()

    run(train, state)


@pytest.mark.parametrize(
    ("calls", "repeated"),
    (
        ((), -1),
        (("commit",), 1),
        (("commit", "check_host_updates", "check_host_updates"), 3),
        (("check_host_updates", "commit"), 1),
        (("check_host_updates",), 2),
    ),
)
def test_steps_are_counted_from_the_last_commit(the_job, monkeypatch, calls, repeated):
    """A boundary is the end of a step; the one in which the loss came is repeated, too."""
    listener = Listener(monkeypatch)
    lost_after(the_job, *calls)
    assert listener.told == [repeated]


def test_a_loss_while_the_ranks_ask_for_changes_repeats_no_committed_step(the_job, monkeypatch):
    listener, state = Listener(monkeypatch), states.ObjectState(step=0)
    losses = [errors.PeerLostError("rank 1")]

    def lose(flags, _name):
        if losses:
            raise losses.pop()
        return flags

    monkeypatch.setattr(states, "any_rank", lose)
    run(lambda given: given.commit(), state)
    assert listener.told == [0]


def test_an_announced_change_repeats_nothing_and_other_ranks_tell_nothing(the_job, monkeypatch):
    listener = Listener(monkeypatch)
    scripted(the_job, HostsUpdatedInterrupt(), HostsUpdatedInterrupt(), 5)
    assert listener.told == [0, 0]
    monkeypatch.setattr(loop._job, "rank", lambda: 1)
    scripted(the_job, HostsUpdatedInterrupt(), 5)
    assert listener.told == [0, 0]


def test_losses_before_the_training_is_called_again_are_one_interruption(the_job, monkeypatch):
    listener = Listener(monkeypatch)
    state = Recorded(the_job.log)
    state.sync_fails = [errors.PeerLostError("rank 2"), errors.PeerLostError("rank 3")]
    run(lambda given: 3, state)
    assert listener.told == [-1]


@pytest.fixture
def alone():
    horo.init(comm=[0])
    yield
    horo.shutdown()


def test_a_loss_repeats_the_step_that_could_not_end(monkeypatch, alone):
    for module in (_optimizer, elastic):  # its optimizer expects that peers come later
        monkeypatch.setattr(module, "is_elastic", lambda: True)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
    state = elastic.TorchState(model, optimizer, batch=0)

    def step():
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    assert state._interrupted() == 1 and state._steps() == 0
    step()
    before = state._moved_at()
    state._asking = True  # check_host_updates() has failed: the step had ended
    assert state._interrupted() == 0
    step()
    assert state._moved_at() >= before > 0 and state._steps() == 2


def test_a_program_may_add_kinds_of_objects_that_a_state_keeps(alone):
    class Counter:
        value = 3

    class CounterHandler(elastic.StateHandler):
        def save(self):
            self.kept = self.value.value

        def restore(self):
            self.value.value = self.kept

    known = elastic.get_handler_registry()
    elastic.set_handler_registry([*known, (Counter, CounterHandler)])
    try:
        counter = Counter()
        state = elastic.TorchState(counter=counter)
        counter.value = 4
        state.restore()
        assert counter.value == 3 and state.counter is counter
        with pytest.raises(TypeError, match="no subclass of StateHandler"):
            elastic.set_handler_registry([(Counter, Counter)])
    finally:
        elastic.set_handler_registry(known)
