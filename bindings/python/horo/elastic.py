# SPDX-License-Identifier: Apache-2.0
"""Trainings whose ranks come and go, for any framework; horo.torch.elastic has more for PyTorch.

    state = horo.elastic.ObjectState(step=0)

    @horo.elastic.run
    def train(state):
        while state.step < steps:
            ...
            state.step += 1
            state.commit()

    train(state)

`horo run --min-np 2 -np 4` starts such a job. In other jobs the functions work, too, but no rank may
be lost there.
"""

from __future__ import annotations

from horo._elastic.generation import generation, is_elastic, pending_change, survivors
from horo._elastic.interrupt import HostsUpdatedInterrupt
from horo._elastic.loop import run, run_fn
from horo._elastic.state import ObjectState, State

__all__ = [
    "generation",
    "HostsUpdatedInterrupt",
    "is_elastic",
    "ObjectState",
    "pending_change",
    "run",
    "run_fn",
    "State",
    "survivors",
]
