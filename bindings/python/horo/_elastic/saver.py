# SPDX-License-Identifier: Apache-2.0
"""Keeps the state of a training in a directory, as save_to() has ordered, and resumes from there."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

import horo
from horo import _job
from horo._arguments import whole_number
from horo._elastic import generation, resuming, saved_file
from horo._elastic.saved_file import Head
from horo._elastic.saving import Schedule, Writer

if TYPE_CHECKING:
    from typing import Any


class Saver:
    """Belongs to one state of the training, and asks it for its content. Rank 0 saves. The other
    ranks count with it, since another rank may be rank 0 in the next generation.

    `boundaries`: how often the training has passed a point between two steps, in all jobs. Files
    have this number, so that the newest one is known by it."""

    def __init__(
        self, directory: Any, every: int | None, minutes: float | None, keep: int
    ) -> None:
        """Fails: ValueError."""
        keep = whole_number(keep, "keep")
        if keep < 1:
            raise ValueError(f"keep is {keep}; it must be 1 or more")
        self._schedule = Schedule(every, minutes)
        self._writer = Writer(os.path.abspath(os.fsdecode(directory)), keep)
        self.boundaries = 0

    def passed(self, state: Any) -> None:
        """The training stands between two steps. The state is copied here if it is time, and written
        later."""
        self.boundaries += 1
        if self._schedule.due() and state._is_settled():
            self._schedule.restart()
            self._save(state)

    def _save(self, state):
        if resuming.rank() != 0:
            return
        try:
            parts = state._pack(self._writer.buffers())
        except Exception as error:
            return self._writer.tell(f"{type(error).__name__}: {error}")
        here = _job.is_initialized()
        head = Head(
            number=self.boundaries,
            steps=state._steps(),
            generation=generation.generation() if here and generation.is_elastic() else 0,
            ranks=resuming.size(),
            saved_at=time.time(),
            version=horo.__version__,
        )
        return self._writer.write(head, parts)

    def end(self, state: Any) -> None:
        """The training has ended: saves its result, and waits until that is written."""
        if state._is_settled():
            self._save(state)
        self._writer.finish()

    def resume(self, state: Any) -> None:
        """Loads the newest good file if no rank has begun the training. All ranks call it. Fails on
        all ranks: ValueError (a file does not fit this program)."""
        rows = resuming.gather((state._whole, self.boundaries), "elastic.begun")
        self.boundaries = max(boundaries for _, boundaries in rows)
        if any(whole for whole, _ in rows):
            return
        if resuming.rank() == 0:
            with contextlib.suppress(OSError):
                saved_file.remove_torn(self._writer.folder)

        def load(head, parts):
            state._unpack(head, parts)
            self.boundaries = head.number  # also if a rank is lost before the others know of it

        found = resuming.find(self._writer.folder, load)
        if found is not None:
            source, head = found
            state._resumed(source)
            self.boundaries = head.number
        self._schedule.restart()
