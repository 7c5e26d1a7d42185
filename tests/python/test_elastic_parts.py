# SPDX-License-Identifier: Apache-2.0
"""The parts of elastic trainings that need no job: choices, states, the loop."""

import dataclasses
import os
import threading
import weakref

import pytest

import job
from changing_job import Job, Recorded, run, scripted
from horo import errors
from horo._elastic import generation, loop, programs, state as states
from horo._elastic.interrupt import HostsUpdatedInterrupt
from horo._elastic.standing import NO_DIGEST, Choice, Route, Standing, choose_source
from horo.data import AsyncDataLoaderMixin, BaseDataLoader

A, B = b"a" * 16, b"b" * 16


def standing(words):
    """ "7a": whole, 7 steps, digest A. "new": nothing yet. "7a!": its last step was torn."""
    if words == "new":
        return Standing(False, False, 0, NO_DIGEST)
    digest = {"a": A, "b": B, "-": NO_DIGEST}[words.rstrip("!")[-1]]
    return Standing(True, words.endswith("!"), int(words.rstrip("!")[:-1]), digest)


CHOICES = (
    # standings of ranks 0, 1, ...; survivors; source; receivers; diverged; torn
    ("new new new", 0, 0, {1, 2}, (), False),
    ("new new", 2, 0, {1}, (), False),
    ("7a 7a 7a", 3, 0, set(), (), False),
    ("7a 7a new", 2, 0, {2}, (), False),
    ("6b 7a new", 2, 1, {0, 2}, (), False),
    ("6b 7a 7a", 3, 1, {0}, (), False),
    ("7a 7b 7a", 3, 0, {1}, (1,), False),
    ("6a 6a 9b", 2, 0, {2}, (), False),  # rank 2 was away: its state is of another generation
    ("new 7a new", 2, 1, {0, 2}, (), False),  # rank 0 came last time and received nothing
    ("new new 7a", 2, 2, {0, 1}, (), False),
    ("7a! 6b 6b", 3, 1, {0}, (), False),
    ("7a! 7b!", 2, 0, {1}, (), True),
    ("6a! 7b!", 2, 1, {0}, (), True),
    ("3- 3- 3-", 3, 0, {1, 2}, (), False),  # without a digest, equality is not known
    ("3- 4- 3-", 3, 1, {0, 2}, (), False),
    ("7a", 1, 0, set(), (), False),
)


@pytest.mark.parametrize("rows, survivors, source, receivers, diverged, torn", CHOICES)
def test_the_lowest_survivor_that_is_furthest_is_the_source(
    rows, survivors, source, receivers, diverged, torn
):
    choice = choose_source([standing(words) for words in rows.split()], survivors)
    routes = (Route(source, tuple(sorted(receivers))),) if receivers else ()
    assert choice == Choice(source, frozenset(receivers), diverged, torn, routes)


ROUTES = (
    # hosts of ranks 0, 1, ...; survivors, all equal; ranks with another layout; routes
    ("ABAB", 2, (), {0: (2,), 1: (3,)}),
    ("ABBA", 2, (), {0: (3,), 1: (2,)}),
    ("AABB", 2, (), {0: (2, 3)}),  # nobody on host B has the state
    ("AABC", 2, (), {0: (2, 3)}),
    ("ABBB", 3, (), {1: (3,)}),  # the lowest of the host
    ("ABAB", 2, (1,), {0: (2, 3)}),  # rank 1 has other tensors, so it gives none
    ("AAAA", 4, (), {}),
)


@pytest.mark.parametrize("hosts, survivors, others, routes", ROUTES)
def test_a_new_rank_takes_the_state_from_a_rank_of_its_host_where_there_is_one(
    hosts, survivors, others, routes
):
    rows = [standing("7a" if rank < survivors else "new") for rank in range(len(hosts))]
    rows = [
        dataclasses.replace(row, host=host.encode() * 16, layout=B if rank in others else A)
        for rank, (row, host) in enumerate(zip(rows, hosts))
    ]
    found = choose_source(rows, survivors).routes
    assert {route.giver: route.takers for route in found} == routes


def test_a_rank_with_a_part_of_a_lost_state_is_no_source():
    part = Standing(False, True, 0, NO_DIGEST)
    assert choose_source([part, Standing(False, False, 0, NO_DIGEST)], 0).source == 1
    with pytest.raises(ValueError, match="only a part of it"):
        choose_source([part, part], 0)


def test_a_standing_travels_as_bytes():
    for words in ("new", "7a", "123456789012b!"):
        assert Standing.unpack(standing(words).pack()) == standing(words)


# -- States ------------------------------------------------------------------------------------------


@pytest.fixture
def the_job(monkeypatch):
    return Job(monkeypatch)


def test_object_state_goes_back_to_the_last_commit(the_job):
    state = states.ObjectState(epoch=1, found=[1])
    state.epoch, state.other = 2, "not in the state"
    state.found.append(2)
    state.restore()
    assert (state.epoch, state.found, state.other) == (1, [1], "not in the state")
    state.epoch = 3
    state.found.append(5)
    state.commit()
    state.epoch, state.found = 4, None
    state.restore()
    assert (state.epoch, state.found) == (3, [1, 5])
    state.found.append(6)
    state.restore()
    assert state.found == [1, 5]


@pytest.mark.parametrize(
    "change, skip", (((1, 1), True), ((4, 2), False), ((9, 3), False), ((3, 0), False))
)
def test_a_pending_change_ends_the_try(the_job, change, skip):
    state = states.ObjectState()
    state.commit()
    the_job.change = change
    with pytest.raises(HostsUpdatedInterrupt) as caught:
        state.commit()
    assert caught.value.skip_sync is skip


def test_two_announcements_within_one_second_are_both_found(the_job):
    state = states.ObjectState()
    state.on_hosts_updated(7, 1)
    state.on_hosts_updated(7, 2)
    with pytest.raises(HostsUpdatedInterrupt) as caught:
        state.check_host_updates()
    assert not caught.value.skip_sync
    state.check_host_updates()
    state.on_hosts_updated(8, 2)
    state.on_reset()
    state.check_host_updates()


RESET = ["renew", "reset", "first", "second"]


def test_a_training_that_ends_is_called_once(the_job):
    assert scripted(the_job, 5) == 5
    assert the_job.log == ["sync", "try"]


def test_after_a_loss_the_state_goes_back_and_is_made_equal(the_job):
    assert scripted(the_job, errors.PeerLostError("rank 1"), errors.ShutDownError("it left"), 5) == 5
    again = ["restore", *RESET, "sync", "try"]
    assert the_job.log == ["sync", "try", *again, *again]


def test_after_an_announced_change_nothing_goes_back(the_job):
    assert scripted(the_job, HostsUpdatedInterrupt(), 5) == 5
    assert the_job.log == ["sync", "try", *RESET, "sync", "try"]


def test_ranks_that_were_only_removed_need_no_sync_unless_others_came(the_job):
    assert scripted(the_job, HostsUpdatedInterrupt(skip_sync=True), 5) == 5
    assert the_job.log == ["sync", "try", *RESET, "try"]
    del the_job.log[:]
    the_job.kept = 0

    def renew():
        the_job.log.append("renew")
        the_job.kept, the_job.ranks = 1, 1
        the_job.kept = 0  # a rank came between

    loop.renew = renew
    assert scripted(the_job, HostsUpdatedInterrupt(skip_sync=True), 5) == 5
    assert the_job.log == ["sync", "try", *RESET, "sync", "try"]


def test_sync_is_left_out_by_all_ranks_or_by_none(the_job):
    """Another rank has met a loss in the call that announced the removal here."""
    the_job.others_flags = 1
    assert scripted(the_job, HostsUpdatedInterrupt(skip_sync=True), 5) == 5
    assert the_job.log == ["sync", "try", *RESET, "sync", "try"]


@pytest.mark.parametrize("elastic", [True, False])
def test_a_state_that_only_some_ranks_save_is_refused(the_job, elastic):
    the_job.elastic, the_job.others_flags = elastic, loop._SAVES
    with pytest.raises(ValueError, match="call it on all ranks"):
        scripted(the_job)
    assert the_job.log == []


def test_a_value_may_have_the_name_of_resume(the_job):
    assert loop.run(lambda state: state.resume)(states.ObjectState(resume="yes")) == "yes"


def test_a_loss_while_the_state_is_made_equal_is_a_loss_too(the_job):
    state = Recorded(the_job.log)
    state.sync_fails = [errors.PeerLostError("rank 2")]
    assert run(lambda given: 3, state) == 3
    assert the_job.log == ["sync", "restore", "renew", "reset", "sync"]


def test_a_loss_in_a_reset_callback_begins_the_next_generation(the_job):
    state = Recorded(the_job.log)
    losses = [errors.PeerLostError("rank 2")]

    def callback():
        if losses:
            raise losses.pop()

    state.register_reset_callbacks([callback])
    state.sync_fails = [errors.PeerLostError("rank 1")]
    assert run(lambda given: 3, state) == 3
    assert the_job.log == ["sync", "restore", "renew", "reset", "renew", "reset", "sync"]


@pytest.mark.parametrize(
    "error",
    (
        errors.MismatchError("they differ"),
        errors.DuplicateNameError("twice"),
        errors.ResourceError("full"),
        ValueError("of the program"),
        KeyboardInterrupt(),
    ),
)
def test_what_another_generation_does_not_mend_is_raised(the_job, error):
    with pytest.raises(type(error)):
        scripted(the_job, error)
    assert the_job.log == ["sync", "try"]


def test_a_job_with_fixed_ranks_raises_the_loss(the_job):
    the_job.elastic = False
    with pytest.raises(errors.PeerLostError):
        scripted(the_job, errors.PeerLostError("rank 1"))
    assert the_job.log == ["sync", "try"]


def test_a_process_that_is_removed_exits_with_code_0(the_job):
    the_job.fails = [errors.RemovedError("this process is no longer part of the job: shrunk")]
    with pytest.raises(SystemExit) as caught:
        scripted(the_job, HostsUpdatedInterrupt())
    assert caught.value.code == 0


def test_a_process_that_never_had_a_place_exits_with_code_0():
    """It has come too late, and knows no wrapper yet."""
    done = job.run_alone(
        """
        import atexit, types
        import horo.elastic
        from horo import _failures, _life, errors
        def no_place(_status):
            raise errors.RemovedError("this process is no longer part of the job: it is ending")
        _life.check, _life.slow = no_place, types.SimpleNamespace(horo_init=lambda: 20)
        atexit.register(print, "the end")
        try:
            _life.init()
        except horo.HoroError as error:
            assert error.status == "removed"
        _life.init()
        print("it went on")
        """
    )
    assert done.code == 0 and "Traceback" not in done.output, done.output
    assert done.output.count("no longer part of the job: it is ending") == 2, done.output
    assert "the end" in done.output and "it went on" not in done.output, done.output


def test_a_process_that_is_refused_raises_the_reason(the_job):
    the_job.fails = [errors.StartError("all hosts were put aside")]
    with pytest.raises(errors.StartError, match="put aside"):
        scripted(the_job, errors.PeerLostError("rank 1"))


def test_the_ranks_leave_together(the_job, monkeypatch):
    the_job.ranks = 2
    losses = [errors.PeerLostError("in the last step of the others")]

    def barrier():
        the_job.log.append("barrier")
        if losses:
            raise losses.pop()

    monkeypatch.setattr(loop, "barrier", barrier)
    assert scripted(the_job, 5, 6) == 6
    again = ["renew", "restore", *RESET[1:], "sync", "try", "barrier"]
    assert the_job.log == ["sync", "try", "barrier", *again]


def test_a_training_that_has_ended_here_needs_no_further_generation(the_job, monkeypatch, capsys):
    """A rank is lost while all wait for each other at the end, and another one has left already."""
    the_job.ranks = 2
    the_job.fails = [errors.StartError("worker 0 on host a ended with code 0")]

    def barrier():
        raise errors.PeerLostError("rank 1")

    monkeypatch.setattr(loop, "barrier", barrier)
    with pytest.raises(errors.NotInitializedError):
        loop._job.cross_rank()
    assert scripted(the_job, 5) == 5
    assert "worker 0 on host a ended with code 0" in capsys.readouterr().err
    assert loop._job.cross_rank() == 3, "the program may still ask which rank it was"
    assert the_job.log == ["sync", "try", "renew"], "the state of the end stays"


def test_a_training_that_has_ended_here_saves_its_state(the_job, monkeypatch, tmp_path):
    """Rank 0, which saves at the end, may be the rank that is lost."""
    the_job.fails = [errors.StartError("worker 0 on host a ended with code 0")]

    def barrier():
        raise errors.PeerLostError("rank 0")

    def train(state):
        state.epoch = 1
        state.commit()
        state.epoch = 2
        the_job.ranks = 2

    monkeypatch.setattr(loop, "barrier", barrier)
    state = states.ObjectState(epoch=0)
    state.sync = lambda: None
    state._load_newest = lambda: None
    state.save_to(tmp_path, every=100)
    loop.run(train)(state)
    assert state.epoch == 2
    the_job.ranks = 1
    other = states.ObjectState(epoch=0)
    other.save_to(tmp_path)
    other.resume()
    assert other.epoch == 2


def test_a_training_that_has_not_ended_is_refused(the_job):
    the_job.ranks = 2
    the_job.fails = [errors.StartError("worker 0 on host a ended with code 0")]
    with pytest.raises(errors.StartError):
        scripted(the_job, errors.PeerLostError("rank 1"))


# -- Programs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "others", "text"),
    (
        ({"torch": "2.4.0", "horo": "1"}, {"torch": "2.4.0", "horo": "1"}, ""),
        ({"torch": "2.4.0"}, {"torch": "2.3.1"}, "torch 2.4.0 instead of 2.3.1"),
        ({"a.py": "sha256 1"}, {"a.py": "sha256 2"}, "a.py sha256 1 instead of sha256 2"),
        ({}, {"torch": "2.3.1"}, "torch not loaded instead of 2.3.1"),
    ),
)
def test_programs_are_compared_by_name(own, others, text):
    assert programs.describe_differences(own, others) == text


def compare_programs(monkeypatch, the_job, ranks, kept, rows):
    the_job.ranks, the_job.kept = ranks, kept
    sent = []

    def gather_objects(own, *_):
        sent.append(own)
        return [{**own, "torch": "2.3.1"}, own]

    monkeypatch.setattr(programs, "gather", lambda row, _name: rows or [row] * ranks)
    monkeypatch.setattr(programs, "gather_objects", gather_objects)
    monkeypatch.setattr(programs, "_own_program", lambda: {"torch": "2.4.0"})
    programs.tell_differences()
    return sent


def test_a_new_rank_with_another_program_says_so(monkeypatch, the_job, capsys):
    assert compare_programs(monkeypatch, the_job, 2, 1, [b"a", b"b"])
    assert "torch 2.4.0 instead of 2.3.1" in capsys.readouterr().err


@pytest.mark.parametrize(("ranks", "kept"), ((1, 0), (2, 2), (2, 1)))
def test_equal_programs_are_not_exchanged(monkeypatch, the_job, capsys, ranks, kept):
    rows = [b"a", b"b"] if ranks == kept else None
    assert not compare_programs(monkeypatch, the_job, ranks, kept, rows)
    assert not capsys.readouterr().err


def test_a_loader_that_reads_ahead_stops_when_the_training_is_left(the_job):
    class Batches(BaseDataLoader):
        def _iterate(self):
            return iter(range(1000))

    class Ahead(AsyncDataLoaderMixin, Batches):
        pass

    losses, loader = [errors.PeerLostError("rank 1")], Ahead(4)

    def train(_state):
        readers = [one for one in threading.enumerate() if one.name == "horo-data"]
        assert not readers, readers
        for batch in loader:
            if batch == 3 and losses:
                raise losses.pop()
            if batch == 6:
                return batch
        return None

    assert run(train, Recorded(the_job.log)) == 6


def test_flags_travel_as_bits(monkeypatch, the_job):
    the_job.ranks, sent = 2, []

    def start(source, target, *_):
        sent.append(bytes(source.data))
        target.data[1] = 1  # another rank has seen that ranks are there
        target.data[2] = 1
        return target

    monkeypatch.setattr(type(states.BYTES), "start_allreduce", lambda self, *words: start(*words))
    monkeypatch.setattr(states, "synchronize", lambda handle: handle)
    state = states.ObjectState()
    the_job.change = (3, 1)
    with pytest.raises(HostsUpdatedInterrupt) as caught:
        state.check_host_updates()
    assert not caught.value.skip_sync and sent[0][:3] == bytes([1, 0, 1])


# -- Generations ------------------------------------------------------------------------------------


def test_followers_hear_of_the_end_as_long_as_they_live(monkeypatch):
    monkeypatch.setattr(generation, "_followers", weakref.WeakSet())

    class Follower:
        ended = 0

        def generation_ended(self):
            Follower.ended += 1

    one, other = Follower(), Follower()
    generation.follow(one)
    generation.follow(other)
    generation.ended()
    del other
    generation.ended()
    assert Follower.ended == 3 and one is not None


def test_the_environment_tells_the_new_place(monkeypatch):
    for name in ("HORO_RANK", "HORO_SIZE", "HORO_LOCAL_RANK", "HOROVOD_RANK", "RANK"):
        monkeypatch.setenv(name, "9")
    monkeypatch.setenv("HORO_GENERATION", "7")
    for name in ("JAX_PROCESS_ID", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HORO_LOCAL_SIZE", "HORO_CROSS_RANK", "HORO_CROSS_SIZE"):
        monkeypatch.setenv(name, "0")
    places = [(names, lambda value=value: value) for value, (names, _) in enumerate(generation._PLACES)]
    monkeypatch.setattr(generation, "_PLACES", places)
    monkeypatch.setattr(generation, "generation", lambda: 4)
    generation.tell_environment()
    found = {name: os.environ.get(name) for names, _ in places for name in names}
    assert found["HORO_RANK"] == found["HOROVOD_RANK"] == found["RANK"] == "0"
    assert found["HORO_SIZE"] == "1" and found["HORO_CROSS_SIZE"] == "5"
    assert found["JAX_PROCESS_ID"] is None and found["WORLD_SIZE"] is None
    assert os.environ["HORO_GENERATION"] == "4"


def test_names_of_optimizers_continue_behind_those_that_stay():
    from horo._names import Names

    names = Names(0)
    assert [next(names.optimizers), next(names.optimizers)] == [0, 1]
    names.keep_optimizers()
    assert next(names.optimizers) == 2
    names.clear()
    assert next(names.optimizers) == 2
    assert next(names.unnamed_optimizers) == 0
