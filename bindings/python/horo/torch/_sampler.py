# SPDX-License-Identifier: Apache-2.0
"""ElasticSampler: divides the samples of an epoch between ranks that come and go."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import torch.utils.data

from horo import _job
from horo._elastic.shares import Shares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sized

# At run time the base is torch's; mypy sees a plain class.
_Sampler: Any = object if TYPE_CHECKING else torch.utils.data.Sampler


class ElasticSampler(_Sampler):
    """Gives each rank its part of the samples of `dataset`. As an attribute of a TorchState it
    divides the samples that are not done between the new ranks when the members of the job change,
    so that every sample of an epoch is visited once. All ranks get the same number of samples. When
    the last ones do not divide evenly, some of them go to two ranks, fewer than there are ranks."""

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self._clock: Callable[[], tuple[int, int] | None] | None = None
        self._begin: int | None = None  # the clock when the samples were divided
        self._marks: list[int] = []  # the clock at each batch that was recorded since
        self._shares = Shares(len(dataset))
        self.reset()

    # -- The epoch -------------------------------------------------------------------------------

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch, with another order of the samples. Call it when an epoch has ended, or
        before each epoch: for the epoch that is not finished it changes nothing."""
        if epoch == self.epoch and self._shares.left() and self._shares.left() < self._shares.count:
            return
        self.epoch = epoch
        self._shares = Shares(len(self.dataset))
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Each rank has visited its next `batch_size` samples. Call it after each batch on all
        ranks, before or after the optimizer's step, once per backward or once per step. With one DistributedOptimizer in the state, a
        batch whose step did not end is visited again. `batch_idx` has no effect."""
        del batch_idx
        self._shares.record(batch_size)
        now = self._now()
        if now is not None:
            self._marks.append(now[1])

    def record_indices(self, indices: Iterable[int]) -> None:
        """This rank alone has visited these samples of the dataset, for example in an evaluation in
        which the ranks do not wait for each other."""
        place = {sample: position for position, sample in enumerate(self._order)}
        self._shares.record_positions(place[int(index)] for index in indices)

    @property
    def processed_num(self) -> int:
        """The number of samples that are done, of all ranks."""
        return self._shares.count - self._shares.left()

    # -- The members -----------------------------------------------------------------------------

    def reset(self) -> None:
        """Divides the samples that are not done between the ranks of the job."""
        here = _job.is_initialized()
        self.rank, self.num_replicas = (_job.rank(), _job.size()) if here else (0, 1)
        self._order = list(range(self._shares.count))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(self._order)
        positions = self._shares.deal(self.rank, self.num_replicas)
        self.indices = [self._order[position] for position in positions]
        self.num_samples = len(self.indices)
        self.total_size = self.num_samples * self.num_replicas
        self._start_clock()

    def _follow(self, clock):
        """`clock()` tells the number of backwards whose steps have ended, and that of all backwards;
        or None."""
        self._clock = clock
        self._start_clock()

    def _now(self):
        return self._clock and self._clock()

    def _start_clock(self):
        now = self._now()
        self._begin, self._marks = now and now[0], []

    def _forget_unfinished(self):
        """The batches whose steps have not ended will be visited again. The first mark tells whether
        batches are recorded before their backward or behind it."""
        now, marks = self._now(), self._marks
        if now is None or self._begin is None or len(marks) != self._shares.recorded():
            return
        first = now[0] if marks and marks[0] == self._begin else now[0] + 1  # of those to come
        self._shares.forget_after(sum(mark < first for mark in marks))
        del marks[self._shares.recorded() :]

    def _merge(self, extras):
        """Samples at these positions are done, on other ranks."""
        self._shares.record_positions(extras)
        self.reset()

    # -- The state -------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The epoch, and the samples that are done."""
        shares = self._shares
        return {
            "epoch": self.epoch,
            "processed_num": shares.prefix,
            "processed_positions": shares.extras(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a state_dict()."""
        self.epoch = state_dict["epoch"]
        prefix, extras = state_dict["processed_num"], state_dict.get("processed_positions", ())
        self._shares = Shares(len(self.dataset), prefix, extras)
        self.reset()

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return self.num_samples
