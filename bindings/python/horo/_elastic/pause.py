# SPDX-License-Identifier: Apache-2.0
"""How long a training stands still when the members of its job change, for the launcher's reports."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from horo import _job
from horo._elastic import generation
from horo._native import slow

if TYPE_CHECKING:
    from horo._elastic.state import State


class Pause:
    """From the last step that was complete until the training is called again. Losses that come
    before the training is called again belong to the same pause."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._since: float | None = None
        self._repeated = self._steps = 0

    def begin(self, lost: bool) -> None:
        """The training was interrupted. `lost`: by the loss of a rank. The state is still that of the
        interruption."""
        if self._since is None:
            self._since = self._state._moved_at()
            self._repeated = self._state._interrupted() if lost else 0
            self._steps = self._state._steps()

    def end(self) -> None:
        """The training is about to be called. Rank 0 tells the launcher, if it was interrupted."""
        self._state._begins()
        since, self._since = self._since, None
        if since is None or not generation.is_elastic() or _job.rank() != 0:
            return
        # A rank that was behind has got steps from another one.
        taken = max(0, self._state._steps() - self._steps)
        repeated = self._repeated if self._repeated < 0 else max(0, self._repeated - taken)
        # A launcher that cannot be told keeps nobody from training.
        slow.horo_resumed(max(0.0, time.monotonic() - since), repeated)
