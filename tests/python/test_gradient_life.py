# SPDX-License-Identifier: Apache-2.0
"""The life of a gradient, of a group and of a step, without any framework."""

import itertools
import types

import pytest

from horo import errors
from horo._optimizer.gradient_life import NEXT, Event, Gradient, Group, Phase, State
from horo._optimizer.reducer import Reducer

HANDLES = itertools.count(1)


class Fake(Gradient):
    """Submits to a list; `fail` says what its next submission raises, and when."""

    __slots__ = ("log", "fail", "sparse", "value")

    def __init__(self, name="g", log=None, waits=1):
        record = types.SimpleNamespace(
            slot=types.SimpleNamespace(value=0), handle=0, name=name.encode()
        )
        super().__init__(name, record, waits)
        self.log = [] if log is None else log
        self.fail, self.sparse, self.value = None, 0, 2

    def submit(self):
        if self.fail == "before":
            raise KeyboardInterrupt
        self.slot.value = next(HANDLES)
        if self.fail == "after":
            raise KeyboardInterrupt
        self.handle = self.slot.value
        self.log.append(self.name)

    def prepare(self):
        return True

    def part(self, group):
        return self.name, group

    def present(self):
        return self.value > 0

    def nonzero(self):
        return self.value == 2


def test_a_gradient_is_submitted_by_its_last_backward():
    gradient = Fake(waits=3)
    for left in (2, 1):
        gradient.computed("ignored")
        assert gradient.state is State.COUNTING and gradient.waits == left and not gradient.log
    gradient.computed()
    assert gradient.state is State.IN_FLIGHT and gradient.log == ["g"]
    gradient.landed()
    assert gradient.state is State.COUNTED


def test_a_backward_too_many_is_refused():
    gradient = Fake("weight")
    gradient.computed()
    for _ in range(2):
        with pytest.raises(AssertionError, match="weight was computed more often"):
            gradient.computed()
    assert gradient.log == ["weight"]


def test_a_backward_while_the_runtime_has_the_memory_is_refused():
    gradient = Fake("weight")
    gradient.computed()
    gradient.waits = 2  # counted anew, by set_backward_passes_per_step()
    gradient.computed()
    with pytest.raises(errors.DuplicateNameError, match="weight is being reduced already"):
        gradient.computed()
    assert gradient.waits == 0 and gradient.log == ["weight"]


def test_due_submits_whatever_backwards_are_missing():
    gradient = Fake(waits=5)
    gradient.due()
    assert gradient.state is State.IN_FLIGHT and gradient.log == ["g"]
    gradient.waits = 5
    gradient.due()
    assert gradient.waits == 0 and gradient.log == ["g"]


@pytest.mark.parametrize("event", ("computed", "due"))
def test_an_exception_before_the_submission_leaves_one_backward(event):
    gradient = Fake()
    gradient.fail = "before"
    with pytest.raises(KeyboardInterrupt):
        getattr(gradient, event)()
    assert gradient.state is State.COUNTING and gradient.waits == 1
    gradient.fail = None
    gradient.due()
    assert gradient.log == ["g"]


@pytest.mark.parametrize("event", ("computed", "due"))
def test_an_exception_after_the_submission_leaves_the_gradient_in_flight(event):
    gradient = Fake()
    gradient.fail = "after"
    with pytest.raises(KeyboardInterrupt):
        getattr(gradient, event)()
    assert gradient.state is State.IN_FLIGHT and gradient.handle == gradient.slot.value
    assert gradient.waits == 0 and gradient.record.handle == gradient.handle


def grouped(count=3, accepted=None):
    """Gradients of one group, and what was submitted. `accepted`: an exception comes after so many."""
    calls = []

    def submit_all(parts, handles):
        calls.append(parts)
        for index in range(len(parts) if accepted is None else accepted):
            handles[index] = next(HANDLES)
        if accepted is not None:
            raise KeyboardInterrupt
        return handles[:]

    members = [Fake(name) for name in "abcdef"[:count]]
    Group(members, submit_all)
    return members, calls


def test_a_group_is_submitted_when_its_last_member_is_counted():
    for order in itertools.permutations(range(3)):
        members, calls = grouped()
        for index in order:
            assert not calls
            members[index].computed()
        (parts,) = calls
        assert parts == [(name, (b"optimizer.a", 3)) for name in "abc"]
        assert all(member.state is State.IN_FLIGHT for member in members)


def test_an_interrupted_group_knows_which_members_are_in_flight():
    for accepted in range(4):
        members, _ = grouped(accepted=accepted)
        members[0].computed()
        members[1].computed()
        with pytest.raises(KeyboardInterrupt):
            members[2].computed()
        states = [State.IN_FLIGHT] * accepted + [State.COUNTING] * (3 - accepted)
        assert [member.state for member in members] == states


def test_every_event_has_a_next_phase_from_every_phase():
    assert set(NEXT) == set(Event)
    assert all(set(row) == set(Phase) for row in NEXT.values())
    assert {phase for row in NEXT.values() for phase in row.values()} == set(Phase)


def test_a_reduction_of_the_step_is_told_from_one_of_the_user():
    for phase in Phase:
        stepping = phase in (Phase.STEPPING, Phase.APPLYING)
        reduced, failed = NEXT[Event.REDUCTION][phase], NEXT[Event.FAILURE][phase]
        assert reduced is (Phase.APPLYING if stepping else Phase.REDUCED)
        assert failed is (Phase.STEPPING if stepping else Phase.COLLECTING)


class Training:
    """A Reducer whose synchronize() reduces at once, or raises."""

    def __init__(self):
        self.log = []
        self.reducer = Reducer(1)
        self.gradient = Fake(log=self.log)
        self.reducer.add([self.gradient])
        self.error = None

    def synchronize(self):
        self.log.append("reduce")
        if self.error is not None:
            self.reducer._reduced(Event.FAILURE)
            raise self.error
        self.reducer._reduced(Event.REDUCTION)

    def own_step(self, closure=None):
        self.log.append("apply")
        if isinstance(closure, Exception):
            raise closure
        return closure() if closure else None

    def step(self):
        self.reducer.step(self.synchronize, self.own_step)

    def failing_step(self):
        with pytest.raises(ZeroDivisionError):
            self.reducer.step(self.synchronize, lambda: 1 / 0)

    def backward(self):
        self.gradient.waits = 0


def test_a_step_reduces_then_applies():
    training = Training()
    for _ in range(2):
        training.step()
    assert training.log == ["reduce", "apply"] * 2
    assert training.reducer.phase is Phase.COLLECTING


def test_a_step_after_synchronize_warns_and_reduces_again():
    training = Training()
    training.synchronize()
    with pytest.warns(UserWarning, match="synchronizes again"):
        training.step()
    assert training.log == ["reduce", "reduce", "apply"]


def test_a_skipping_step_applies_what_is_there():
    training = Training()
    training.synchronize()
    with training.reducer.skip():
        training.step()
    training.step()
    assert training.log == ["reduce", "apply", "reduce", "apply"]


def test_a_step_whose_own_step_failed_does_not_reduce_again():
    training = Training()
    training.failing_step()
    assert training.reducer.phase is Phase.APPLYING
    training.step()
    assert training.log == ["reduce", "apply"] and training.reducer.phase is Phase.COLLECTING


@pytest.mark.parametrize("value", (0, 1))
def test_a_step_after_a_failed_one_reduces_another_batch(value):
    """Its gradients were dropped or zeroed, or a backward has run."""
    training = Training()
    training.failing_step()
    training.gradient.value = value
    training.step()
    training.failing_step()
    training.backward()
    training.step()
    assert training.log == ["reduce", "reduce", "apply", "reduce", "reduce", "apply"]


def test_a_step_whose_reduction_failed_reduces_again():
    training = Training()
    training.error = errors.MismatchError("they differ")
    with pytest.raises(errors.MismatchError):
        training.step()
    assert training.reducer.phase is Phase.STEPPING
    training.error = None
    training.step()
    assert training.log == ["reduce", "reduce", "apply"]


def test_cleared_gradients_begin_a_new_step():
    training = Training()
    training.failing_step()
    training.reducer.clear()
    assert training.reducer.phase is Phase.COLLECTING


def test_a_closure_is_reduced_before_the_own_step_reads_it():
    training = Training()

    def closure():
        training.backward()
        return 7

    assert training.reducer.step_with(training.synchronize, closure, training.own_step) == 7
    assert training.log == ["apply", "reduce"]


def test_gradients_from_before_a_closure_are_reduced_once():
    training = Training()
    training.backward()
    training.reducer.step_with(training.synchronize, lambda: 7, training.own_step)
    assert training.log == ["reduce", "apply"]


# -- Steps over generations ---------------------------------------------------------------------------


class Dropping(Fake):
    __slots__ = ("dropped",)

    def drop(self):
        self.dropped = True


def reducer_of(training):
    gradient = Dropping()
    gradient.dropped = False
    training.reducer.gradients.clear()
    training.reducer.add([gradient])
    training.gradient = gradient
    return training.reducer, gradient


def test_finished_steps_are_counted():
    training = Training()
    for steps in range(3):
        assert training.reducer.steps == steps
        training.backward()
        training.step()
    training.backward()
    training.error = errors.PeerLostError("rank 1")
    with pytest.raises(errors.PeerLostError):
        training.step()
    assert training.reducer.steps == 3 and not training.reducer.torn
    assert training.reducer.within_step()


def test_a_step_that_was_changing_parameters_is_torn():
    training = Training()
    training.failing_step()
    assert training.reducer.torn and training.reducer.steps == 0


def test_a_loss_in_the_first_closure_leaves_the_parameters_whole():
    reducer = Training().reducer

    def lost():
        raise errors.PeerLostError("rank 1")

    with pytest.raises(errors.PeerLostError):
        reducer.step_with(lambda: None, lost, lambda closure: closure())
    assert not reducer.torn
    calls = iter((lambda: 1, lost))
    with pytest.raises(errors.PeerLostError):
        reducer.step_with(
            lambda: None, lambda: next(calls)(), lambda closure: (closure(), closure())
        )
    assert reducer.torn and reducer.steps == 0


def test_gradients_of_an_unfinished_step_are_dropped_at_the_end_of_a_generation():
    reducer, gradient = reducer_of(Training())
    assert not reducer.within_step()
    gradient.computed()
    assert reducer.within_step()
    reducer.generation_ended()
    assert gradient.dropped and not gradient.handle and not reducer.within_step()
    assert reducer.phase is Phase.COLLECTING
    gradient.dropped = False
    reducer.generation_ended()
    assert not gradient.dropped


def test_the_first_backward_of_a_generation_renews_the_optimizer():
    reducer, gradient = reducer_of(Training())
    renewals = []

    class Optimizer:
        def renew(self):
            renewals.append(gradient.log[:])
            reducer.restart()

    optimizer = Optimizer()
    reducer.renews_by(optimizer.renew)
    gradient.computed()
    gradient.landed()
    reducer.generation_ended()
    reducer.restart(2)  # does not make the gradient ready for a job that has ended
    assert gradient.waits == 0
    gradient.computed()
    assert renewals == [["g"]] and gradient.waits == 1
    gradient.computed()
    assert gradient.log == ["g", "g"] and gradient.handle
    assert not reducer.renewed() and len(renewals) == 1


def test_a_renewal_that_fails_is_tried_again():
    reducer, gradient = reducer_of(Training())
    outcomes = [errors.NotInitializedError("not yet"), None]

    class Optimizer:
        def renew(self):
            reducer.restart()
            error = outcomes.pop(0)
            if error is not None:
                raise error

    optimizer = Optimizer()
    reducer.renews_by(optimizer.renew)
    reducer.generation_ended()
    with pytest.raises(errors.NotInitializedError):
        gradient.computed()
    assert reducer.stale and gradient.waits == 0 and not gradient.log
    gradient.computed()
    assert gradient.log == ["g"] and not outcomes
