# SPDX-License-Identifier: Apache-2.0
"""Data loaders that read ahead.

    class Loader(BaseDataLoader):
        def __len__(self): ...
        def _iterate(self): ...                      # yields batches

    class AsyncLoader(AsyncDataLoaderMixin, Loader):
        pass

    loader = AsyncLoader(async_loader_queue_size=16)  # and Loader's own arguments, by name
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

PATIENCE_S = 10  # how long a loop that ends waits for a source that does not return


class BaseDataLoader:
    """Iterates over the batches of a subclass."""

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        raise NotImplementedError(f"{type(self).__name__} needs __len__")

    def _iterate(self) -> Iterator[Any]:
        """Yields the batches of one epoch."""
        raise NotImplementedError(f"{type(self).__name__} needs _iterate")

    def _process_batch(self, batch: Any) -> Any:
        """Converts a batch in the thread of the loop, for example by moving it to a device."""
        return batch

    def __iter__(self) -> Iterator[Any]:
        for batch in self._iterate():
            yield self._process_batch(batch)


class _Ahead:
    """The thread that reads one epoch, and the queue that it fills."""

    def __init__(self, iterate, room, say):
        self._iterate = iterate
        self._queue: queue.Queue[Any] = queue.Queue(room)
        self._say = say
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._fill, name="horo-data", daemon=True)
        self._thread.start()

    def _fill(self):
        try:
            for batch in self._iterate():
                if not self._put((batch, None)):
                    return
            self._put((None, StopIteration()))
        except BaseException as error:  # raised where the loop runs
            self._put((None, error))

    def _put(self, item):
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                pass
        return False

    def batches(self):
        while True:
            self._say(f"{self._queue.qsize()} batches wait")
            if self._stopped.is_set():
                raise RuntimeError("the loader was closed while a loop over it went on")
            batch, error = self._queue.get()
            if self._stopped.is_set():
                continue
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield batch

    def stop(self):
        self._stopped.set()
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait((None, None))  # wakes a loop that waits
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            warnings.warn(
                f"the loader's source has not returned for {PATIENCE_S} s; its thread is left alone",
                stacklevel=2,
            )


class AsyncDataLoaderMixin:
    """Comes before a loader's class and reads ahead in a thread, up to `async_loader_queue_size`
    batches. With 0 the loop reads itself. An exception in the thread is raised in the loop. A loop
    that is left early ends its thread when the iterator is deleted, or by close_async_loader()."""

    if TYPE_CHECKING:  # methods of the loader's class
        _iterate: Callable[[], Iterator[Any]]
        _process_batch: Callable[[Any], Any]

    def __init__(
        self,
        async_loader_queue_size: int = 64,
        debug_data_loader: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if async_loader_queue_size < 0:
            raise ValueError(
                f"async_loader_queue_size is {async_loader_queue_size}; it must be 0 or more"
            )
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        self._horo_ahead: list[_Ahead] = []
        super().__init__(*args, **kwargs)

    def _horo_say(self, text):
        if self.debug_data_loader:
            print(f"{type(self).__name__}: {text}", file=sys.stderr, flush=True)

    def __iter__(self) -> Iterator[Any]:
        if self.async_loader_queue_size == 0:
            yield from super().__iter__()  # type: ignore[misc]
            return
        ahead = _Ahead(self._iterate, self.async_loader_queue_size, self._horo_say)
        self._horo_ahead.append(ahead)
        try:
            for batch in ahead.batches():
                yield self._process_batch(batch)
        finally:
            ahead.stop()
            self._horo_ahead = [other for other in self._horo_ahead if other is not ahead]

    def close_async_loader(self) -> None:
        """Ends the threads of all loops over this loader. The loops must not continue."""
        for ahead in self._horo_ahead:
            ahead.stop()


__all__ = [
    "AsyncDataLoaderMixin",
    "BaseDataLoader",
]
