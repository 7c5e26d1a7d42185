# SPDX-License-Identifier: Apache-2.0
"""A job of one rank whose members change, without a runtime."""

from horo import errors
from horo._elastic import generation, loop
from horo._elastic import state as states


class Job:
    """Stands for a job of one rank whose members change."""

    def __init__(self, monkeypatch):
        self.up, self.elastic, self.number, self.kept = True, True, 1, 0
        self.change = (0, 0)
        self.ranks = 1
        self.log = []
        for module, name, fake in (
            (generation, "is_elastic", lambda: self.elastic),
            (generation, "generation", lambda: self.number),
            (generation, "survivors", lambda: self.kept),
            (generation, "pending_change", lambda: self.change),
            (loop._job, "size", lambda: self.ranks),
            (loop._job, "rank", lambda: 0),
            (loop._job, "is_initialized", lambda: self.up),
            (loop, "renew", self.renew),
            (loop, "any_rank", self.any_rank),
            (loop, "tell_differences", lambda: None),
            (loop._job, "place", lambda: {"cross_rank": 3}),
            (loop._job, "_last_place", {}),
        ):
            monkeypatch.setattr(module, name, fake)
        self.fails = []  # exceptions of the next renewals
        self.others_flags = 0  # those that other ranks give

    def any_rank(self, flags, _name):
        return flags | self.others_flags

    def renew(self):
        self.log.append("renew")
        self.number += 1
        self.kept, self.change = self.ranks, (0, 0)
        if self.fails:
            error = self.fails.pop(0)
            self.up = isinstance(error, errors.PeerLostError)
            if error is not None:
                raise error
        self.up = True


def run(function, state):
    """horo.elastic.run(function)(state), with the Job's own renewal."""
    return loop.run_fn(function, lambda: loop.renew())(state)


class Recorded(states.State):
    """Writes down what is called."""

    def __init__(self, log):
        super().__init__()
        self.log = log
        self.sync_fails = []

    def save(self):
        self.log.append("save")

    def restore(self):
        self.log.append("restore")

    def sync(self):
        self.log.append("sync")
        if self.sync_fails:
            raise self.sync_fails.pop(0)

    def reset(self):
        self.log.append("reset")


def scripted(the_job, *outcomes):
    """The log of a training whose tries end in these ways."""
    script = list(outcomes)
    state = Recorded(the_job.log)
    state.register_reset_callbacks([lambda: the_job.log.append("first")])
    state.register_reset_callbacks([lambda: the_job.log.append("second")])

    def train(given, word, *, more):
        assert given is state and (word, more) == ("word", 2)
        the_job.log.append("try")
        outcome = script.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    wrapped = loop.run_fn(train, lambda: loop.renew())
    assert wrapped.__name__ == "train"
    try:
        return wrapped(state, "word", more=2)
    finally:
        assert not script
