# SPDX-License-Identifier: Apache-2.0
"""State that survives a change of the job's members: State and ObjectState."""

from __future__ import annotations

import copy
import queue
from typing import TYPE_CHECKING

from horo import _job, errors
from horo._arguments import MAX
from horo._byte_rows import BYTES, ByteRows
from horo._elastic import generation
from horo._elastic.interrupt import HostsUpdatedInterrupt
from horo._elastic.standing import NO_DIGEST, Choice, Standing, choose_source
from horo._handles import synchronize
from horo._objects import broadcast_object
from horo._sets import WORLD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# Values of these kinds are copied by save(). Of other values it keeps the reference.
_COPIED = (list, dict, set, bytearray)
_FLAGS = generation.REMOVED | generation.ADDED
_PENDING = 4  # beside the flags: there is a change


def _gather(row):
    """The rows of all ranks, which have equal lengths, in rank order."""
    if _job.size() == 1:
        return [row]
    own = ByteRows(bytearray(row), len(row))
    return synchronize(BYTES.start_allgather(own, WORLD, "elastic.standing")).rows()


def any_rank(flags, name):
    """The bits of `flags` that any rank has set. All ranks call it."""
    if not _job.is_initialized() or _job.size() == 1:
        return flags
    own = ByteRows(bytearray(flags >> bit & 1 for bit in range(8)))
    handle = BYTES.start_allreduce(own, own, WORLD, name, MAX, 1.0, 1.0)
    found = synchronize(handle).data
    return sum(bool(one) << bit for bit, one in enumerate(found))


class State:
    """The values that a training must keep when the members of its job change. A subclass has save(),
    restore() and sync()."""

    def __init__(
        self,
        bcast_object: Callable[..., Any] | None = None,
        get_rank: Callable[[], int] | None = None,
    ) -> None:
        """The arguments have no effect here."""
        del bcast_object, get_rank
        self._callbacks: list[Callable[[], Any]] = []
        self._messages: queue.SimpleQueue[tuple[float, int]] = queue.SimpleQueue()

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], Any]]) -> None:
        """Functions to call, in order, after each change of the members: for example, one that
        sets the learning rate for the new number of ranks."""
        self._callbacks.extend(callbacks)

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Announces a change by hand. The next check_host_updates() finds it. Any thread may call
        this."""
        self._messages.put((timestamp, int(update_res)))

    def on_reset(self) -> None:
        """The process has entered a new generation: forgets announced changes, and calls reset()
        and the callbacks."""
        self._take_messages()
        self.reset()
        for callback in self._callbacks:
            callback()

    def reset(self) -> None:
        """A subclass can adapt itself to the new ranks here."""

    def commit(self) -> None:
        """Saves the state, and ends this try if the members are to change. All ranks call it."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Fails on all ranks in the same call when a change was announced to any of them:
        HostsUpdatedInterrupt. All ranks call it."""
        flags = self._take_messages()
        if _job.is_initialized() and generation.is_elastic():
            sequence, announced = generation.pending_change()
            flags |= (announced | _PENDING) if sequence else 0
        found = any_rank(flags, "elastic.change")
        if found:
            raise HostsUpdatedInterrupt(found & ~_PENDING == generation.REMOVED)

    def _take_messages(self):
        """The flags of all announcements by hand, and _PENDING if there are any."""
        flags = 0
        while not self._messages.empty():
            flags |= self._messages.get()[1] & _FLAGS | _PENDING
        return flags

    def save(self) -> None:
        """Keeps a copy of the state in memory, for restore()."""
        raise NotImplementedError(f"{type(self).__name__} needs save()")

    def restore(self) -> None:
        """Goes back to the last copy."""
        raise NotImplementedError(f"{type(self).__name__} needs restore()")

    def sync(self) -> None:
        """Makes the state equal on all ranks. All ranks call it."""
        raise NotImplementedError(f"{type(self).__name__} needs sync()")

    def _failed(self):
        """A collective has failed, because the members change. Called before the process leaves
        the generation."""
        self.restore()

    def _skipped_sync(self):
        """Takes the place of sync() when ranks were only removed. All ranks call it."""

class ObjectState(State):
    """Any Python values. Each keyword becomes an attribute of the same name:

        state = ObjectState(epoch=0, batch=0)

    `bcast_object` and `get_rank` are not needed; programs that were written for Horovod pass them.
    """

    def __init__(
        self,
        bcast_object: Callable[..., Any] | None = None,
        get_rank: Callable[[], int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        del get_rank
        self._bcast_object = bcast_object
        self._names = list(kwargs)
        self._whole = False
        self._commits = 0
        for name, value in kwargs.items():
            setattr(self, name, value)
        self._saved = self._copies()

    def _copies(self):
        return {name: _copied(getattr(self, name)) for name in self._names}

    def save(self) -> None:
        """Keeps the values for restore(). Lists, dicts and sets are copied, other objects are kept
        as they are."""
        self._saved = self._copies()
        self._commits += 1

    def restore(self) -> None:
        """Goes back to the values of the last save() or commit()."""
        for name, value in self._saved.items():
            setattr(self, name, _copied(value))

    def sync(self) -> None:
        """Makes the values equal on all ranks. Ranks that have just come, or that are behind,
        receive them from the lowest rank that is furthest."""
        choice = self._agree()
        if choice.receivers:
            self._exchange(choice)
        self._synced()

    def _agree(self):
        """The Choice that all ranks make from the standings of all."""
        rows = _gather(self._standing().pack())
        kept = generation.survivors() if generation.is_elastic() else 0
        return choose_source([Standing.unpack(row) for row in rows], kept)

    def _standing(self):
        return Standing(self._whole, False, self._commits, NO_DIGEST)

    def _exchange(self, choice: Choice):
        sent = (self._commits, {name: getattr(self, name) for name in self._names})
        commits, values = self._broadcast(sent, choice.source)
        if _job.rank() in choice.receivers:
            self._commits = commits
            self._adopt(values)

    def _adopt(self, values):
        for name, value in values.items():
            if name not in self._names:
                self._names.append(name)
            setattr(self, name, value)

    def _broadcast(self, value, source):
        if self._bcast_object is None:
            return send_object(value, source, "elastic.values")
        return self._bcast_object(value, **({} if source == 0 else {"root_rank": source}))

    def _synced(self):
        """The state is equal on all ranks."""
        self._whole = True
        self._saved = self._copies()


def _copied(value):
    """A value as save() keeps it."""
    if not isinstance(value, _COPIED):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # something in it cannot be copied
        return value


def send_object(value: Any, source: int, name: str) -> Any:
    """broadcast_object() whose failure to pickle is no reason to try again. Fails: ValueError on all
    ranks (the source cannot pickle it)."""
    problem = None
    if _job.rank() == source:
        try:
            return broadcast_object(value, source, name)
        except errors.HoroError:
            raise
        except Exception as error:
            problem = error
    else:
        try:
            return broadcast_object(None, source, name)
        except errors.HoroError as error:
            if error.status != errors.HoroError.status:  # of the runtime
                raise
            problem = error
    raise ValueError(f"the state of rank {source} cannot be sent: {problem}") from problem
