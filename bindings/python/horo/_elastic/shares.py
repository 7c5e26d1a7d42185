# SPDX-License-Identifier: Apache-2.0
"""The samples of an epoch, divided between ranks that come and go.

All ranks have the samples in the same order. `Shares` knows which positions of this order are done:
all before `prefix`, and single ones behind it. The others are dealt to the ranks in turn. A batch
of each rank together is a run of the dealt positions, so after equal batches the positions that are
done are again all before a new prefix.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Shares:
    """One epoch of `count` samples."""

    def __init__(self, count: int, prefix: int = 0, extras: Iterable[int] = ()) -> None:
        """`extras`: positions behind the prefix that are done."""
        self.count = count
        self._from = 0  # the prefix when the positions were dealt
        self._dealt: list[int] = []  # positions that were not done then
        self._extras: set[int] = set()
        self._size = 1
        self._batches: list[int] = []  # samples per rank of each batch that was recorded since
        self.prefix = 0
        self.load(prefix, extras)

    def load(self, prefix: int, extras: Iterable[int] = ()) -> None:
        """Replaces what is done. deal() follows."""
        self.prefix = min(max(prefix, 0), self.count)
        self._extras = {one for one in extras if self.prefix <= one < self.count}
        self._batches = []
        self._absorb()

    def extras(self) -> list[int]:
        """The single positions behind the prefix that are done."""
        return sorted(one for one in self._extras if one >= self.prefix)

    def left(self) -> int:
        """Number of samples that are not done."""
        return self.count - self.prefix - len(self.extras())

    def deal(self, rank: int, size: int) -> list[int]:
        """The positions for this rank. All ranks get the same number of them: when they do not
        divide evenly, the last ones get positions that others have, too."""
        self._absorb()
        self._from, self._size, self._batches = self.prefix, size, []
        rest = range(self.prefix, self.count)
        self._dealt = [one for one in rest if one not in self._extras]
        each = -(-len(self._dealt) // size)
        padded = itertools.islice(itertools.cycle(self._dealt), each * size)
        return list(padded)[rank::size] if each else []

    def record(self, samples: int) -> None:
        """Each rank has done its next `samples` ones."""
        self._batches.append(max(samples, 0))
        self._recount()

    def recorded(self) -> int:
        """Number of batches that were recorded since the positions were dealt."""
        return len(self._batches)

    def forget_after(self, batches: int) -> None:
        """Only the first `batches` recorded since the positions were dealt are done."""
        if batches < len(self._batches):
            del self._batches[max(batches, 0) :]
            self._recount()

    def record_positions(self, positions: Iterable[int]) -> None:
        """These are done, by this rank alone."""
        self._extras.update(one for one in positions if self.prefix <= one < self.count)

    def _recount(self) -> None:
        """Sets the prefix behind the last dealt position that is done."""
        done = min(sum(self._batches) * self._size, len(self._dealt))
        self.prefix = self._dealt[done - 1] + 1 if done else self._from

    def _absorb(self) -> None:
        """Moves the prefix over single positions that follow it."""
        self._extras = {one for one in self._extras if one >= self.prefix}
        while self.prefix in self._extras:
            self._extras.remove(self.prefix)
            self.prefix += 1
