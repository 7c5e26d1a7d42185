# SPDX-License-Identifier: Apache-2.0
"""When a training's state is saved, and the thread that writes it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from horo._arguments import whole_number
from horo._elastic import saved_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from horo._elastic.saved_file import Head

DEFAULT_MINUTES = 10.0


def say(text: str) -> None:
    """One line for the user."""
    with contextlib.suppress(OSError, ValueError):  # a closed stream does not end the training
        print(f"horo: {text}", file=sys.stderr, flush=True)


class Schedule:
    """Says at which boundaries of the training its state is saved."""

    def __init__(self, every: int | None, minutes: float | None) -> None:
        """Fails: ValueError."""
        self._every = None if every is None else whole_number(every, "every")
        if self._every is not None and self._every < 1:
            raise ValueError(f"every is {every}; it must be 1 or more")
        if minutes is not None and not (isinstance(minutes, (int, float)) and 0 < minutes < 1e6):
            raise ValueError(f"minutes is {minutes!r}; it must be a positive number")
        if every is None and minutes is None:
            minutes = DEFAULT_MINUTES
        self._seconds = None if minutes is None else 60.0 * minutes
        self._passed = 0
        self._since = time.monotonic()

    def due(self) -> bool:
        """Counts a boundary. True: the state should be saved, until restart() is called."""
        self._passed += 1
        if self._every is not None and self._passed >= self._every:
            return True
        return self._seconds is not None and time.monotonic() - self._since >= self._seconds

    def restart(self) -> None:
        """The state was saved."""
        self._passed, self._since = 0, time.monotonic()


class Buffers:
    """Memory for copies, used again from save to save, because fresh memory costs page faults."""

    def __init__(self, parts: Sequence[bytes | bytearray] = ()) -> None:
        self._free: dict[int, list[bytearray]] = {}
        for part in parts:
            if isinstance(part, bytearray):
                self._free.setdefault(len(part), []).append(part)

    def take(self, length: int) -> bytearray:
        """Memory with any content."""
        free = self._free.get(length)
        return free.pop() if free else bytearray(length)


class Writer:
    """Writes states to files of a folder, by a thread that lives while there is something to write.
    One state is written at a time, one more may wait, and a newer one takes its place. A failure is
    told once, and ends nothing. Thread: any."""

    def __init__(self, folder: str, keep: int) -> None:
        self.folder = folder
        self._keep = keep
        self._good: dict[str, object] = {}  # files that the thread has written or verified
        self._changed = threading.Condition()
        self._waiting: tuple[Head, list[Any]] | None = None
        self._free = Buffers()
        self._thread: threading.Thread | None = None
        self._told: set[str] = set()

    def buffers(self) -> Buffers:
        """Memory for the next state. A state that waits is given up."""
        with self._changed:
            if self._waiting is not None:
                (_, parts), self._waiting = self._waiting, None
                return Buffers(parts)
            free, self._free = self._free, Buffers()
            return free

    def write(self, head: Head, parts: list[Any]) -> None:
        """Returns at once. The parts are the writer's from now on."""
        with self._changed:
            self._waiting = head, parts
            if self._thread is not None:
                return
            # The interpreter waits for this thread before it exits.
            self._thread = threading.Thread(target=self._write_all, name="horo-saver")
            try:
                self._thread.start()
            except RuntimeError as error:
                self._thread = self._waiting = None
                self.tell(error)

    def finish(self) -> None:
        """Waits until nothing is being written."""
        with self._changed:
            while self._thread is not None:
                self._changed.wait()

    def tell(self, problem: object) -> None:
        """Tells the user why the state is not saved, once for each reason."""
        text = str(problem) or type(problem).__name__
        if text not in self._told:
            self._told.add(text)
            say(
                f"the training's state could not be saved in {self.folder}: {text}; the training "
                "goes on, and files that were saved before stay"
            )

    def _write_all(self):
        while True:
            with self._changed:
                if self._waiting is None:
                    self._thread = None
                    self._changed.notify_all()
                    return
                (head, parts), self._waiting = self._waiting, None
            self._write(head, parts)
            with self._changed:
                self._free = Buffers(parts)

    def _write(self, head, parts):
        try:
            saved_file.write(self.folder, head, parts)
        except Exception as error:
            return self.tell(error)
        if self._told:
            self._told.clear()
            say(f"the training's state is saved again, as {os.path.join(self.folder, head.name())}")
        with contextlib.suppress(OSError):  # a file too many does no harm
            saved_file.remove_old(self.folder, self._keep, head.name(), self._good)
            saved_file.remove_torn(self.folder)
        return None
