# SPDX-License-Identifier: Apache-2.0
"""Steps that a training with several optimizers would do twice after a loss.

Such a training steps one optimizer after the other. When a rank is lost in the step of a later one,
the training begins this round again, but the earlier ones have done their steps.
"""

from __future__ import annotations


class Paces:
    """The steps of each optimizer since the training has last passed a boundary. `even`: between the
    two last boundaries all optimizers have done the same number of steps. Only then a round is known
    to have one step of each."""

    def __init__(self) -> None:
        self.begin: list[int] = []
        self.even = False

    def passed(self, steps: list[int]) -> None:
        """The training stands between two rounds."""
        counts = self._counts(steps)
        if any(counts):
            self.even = len(set(counts)) == 1
        self.begin = list(steps)

    def ahead(self, steps: list[int]) -> list[int]:
        """For each optimizer: 1 if it has done its step of the round that is begun again."""
        counts = self._counts(steps)
        least = min(counts, default=0)
        if not self.even or max(counts, default=0) > least + 1:
            return [0] * len(steps)
        return [count - least for count in counts]

    def _counts(self, steps):
        if len(self.begin) != len(steps):
            return [0] * len(steps)
        return [now - before for before, now in zip(self.begin, steps)]
