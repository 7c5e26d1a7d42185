# SPDX-License-Identifier: Apache-2.0
"""State that survives a change of the job's members: State and ObjectState."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import queue
import time
from typing import TYPE_CHECKING

from horo import _job, errors
from horo._arguments import MAX
from horo._byte_rows import BYTES, ByteRows
from horo._elastic import generation
from horo._elastic.interrupt import HostsUpdatedInterrupt
from horo._elastic.saver import Saver
from horo._elastic.standing import DIGEST, NO_DIGEST, Choice, Standing, choose_source
from horo._handles import synchronize
from horo._objects import broadcast_object, dumps
from horo._sets import WORLD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# Values of these kinds are copied by save(). Of other values it keeps the reference.
_COPIED = (list, dict, set, bytearray)
_FLAGS = generation.REMOVED | generation.ADDED
_PENDING = 4  # beside the flags: there is a change


def gather(row: bytes, name: str) -> list[bytes]:
    """The rows of all ranks, which have equal lengths, in rank order."""
    if _job.size() == 1:
        return [row]
    own = ByteRows(bytearray(row), len(row))
    rows: list[bytes] = synchronize(BYTES.start_allgather(own, WORLD, name)).rows()
    return rows


def digest_of_host() -> bytes:
    """Tells this rank's host from the others of the job."""
    name = os.environ.get("HORO_HOSTNAME", "")
    return hashlib.sha1(name.encode(), usedforsecurity=False).digest()[:DIGEST]


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

    _saver: Saver | None = None
    _whole = False  # the training has begun in this process
    _passed_at = 0.0  # time.monotonic() of the last boundary
    _passed: int | None = None  # boundaries since commit(), or since the training began; None: none ever
    _asking = False  # check_host_updates() asks the other ranks

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
        self._passed = -1  # check_host_updates() counts the boundary of this call
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Fails on all ranks in the same call when a change was announced to any of them:
        HostsUpdatedInterrupt. All ranks call it."""
        self._pass_boundary()
        flags = self._take_messages()
        if _job.is_initialized() and generation.is_elastic():
            sequence, announced = generation.pending_change()
            flags |= (announced | _PENDING) if sequence else 0
        self._asking = True  # stays so if a rank is lost meanwhile
        found = any_rank(flags, "elastic.change")
        self._asking = False
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

    def _prepare(self):
        """Called before a process enters a job that trains already."""

    def _skipped_sync(self):
        """Takes the place of sync() when ranks were only removed. All ranks call it."""

    def _pass_boundary(self):
        """The training stands between two steps."""
        self._passed_at = time.monotonic()
        self._passed = 1 + (self._passed or 0)
        if self._saver is not None:
            self._saver.passed(self)

    # -- Interruptions, for the launcher's reports -----------------------------------------------

    def _begins(self):
        """The training is about to be called."""
        self._passed_at, self._asking = time.monotonic(), False
        self._passed = None if self._passed is None else 0

    def _moved_at(self):
        """time.monotonic() when the last step was complete, or the training was called."""
        return self._passed_at

    def _interrupted(self):
        """The steps that a loss makes the training do again, counted by the boundaries that it has
        passed; -1: it passes none."""
        if self._passed is None:
            return -1
        return self._passed + (0 if self._asking else 1)

    # -- Files -----------------------------------------------------------------------------------

    def save_to(
        self,
        directory: str | os.PathLike[str],
        every: int | None = None,
        minutes: float | None = None,
        keep: int = 3,
    ) -> None:
        """Saves the state in files of `directory`, so that the training can resume when the whole
        job was lost: after every `every`-th commit() or check_host_updates(), or after `minutes`,
        whichever comes first; without both, after 10 minutes. Also when run() has ended. Rank 0
        copies the state there, and a thread writes it. The `keep` newest files stay.

        Call it on all ranks before run(), which loads the newest good file when a job begins. Files
        are loaded by pickle: whoever may write to the directory can run any code in the training.
        Fails: ValueError; TypeError (a subclass of State has no state_dict() and
        load_state_dict())."""
        for name in ("state_dict", "load_state_dict"):
            if type(self)._pack is State._pack and not hasattr(self, name):
                raise TypeError(f"save_to() needs {type(self).__name__}.{name}()")
        self._saver = Saver(directory, every, minutes, keep)

    def resume(self) -> None:
        """Loads the newest good file of save_to(), if no rank has begun the training. run() does it
        before sync(). All ranks call it. Fails: ValueError (the file does not fit the program)."""
        self._load_newest()

    def _load_newest(self):
        """resume(), also where the program has a value or a method of that name."""
        if self._saver is not None:
            self._saver.resume(self)

    def _end_saving(self):
        """The training has returned."""
        if self._saver is not None:
            self._saver.end(self)

    def _is_settled(self):
        """Whether the values are those between two steps."""
        return True

    def _steps(self):
        """The steps that optimizers have done, for people; -1: unknown."""
        return -1

    def _pack(self, buffers):
        """The content as parts of a file. `buffers` has memory for them."""
        del buffers
        return [dumps(self.state_dict())]  # type: ignore[attr-defined]

    def _unpack(self, head, parts):
        """Takes over the content of a file, on one rank."""
        self.load_state_dict(pickle.loads(parts[0]))  # type: ignore[attr-defined]
        self._unpacked(head)

    def _unpacked(self, head):
        """The members may have changed since the file was written."""
        if head.ranks != (_job.size() if _job.is_initialized() else 1):
            self.on_reset()

    def _resumed(self, source):
        """Rank `source` has loaded a file. All ranks call it."""
        if not _job.is_initialized() or _job.size() == 1:
            return
        own = self.state_dict() if _job.rank() == source else None  # type: ignore[attr-defined]
        content = send_object(own, source, "elastic.resumed")
        if _job.rank() != source:
            self.load_state_dict(content)  # type: ignore[attr-defined]


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
        rows = gather(self._standing().pack(), "elastic.standing")
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

    # -- Files -----------------------------------------------------------------------------------

    def _pack(self, buffers):
        del buffers
        return [dumps(self._content())]

    def _content(self):
        """All that a file holds."""
        values = {name: getattr(self, name) for name in self._names}
        return {"commits": self._commits, "values": values}

    def _unpack(self, head, parts):
        self._take(pickle.loads(parts[0]))
        self._unpacked(head)
        self._synced()  # sync() follows, and makes this rank the source

    def _take(self, content):
        self._commits = content["commits"]
        self._adopt(content["values"])

    def _resumed(self, source):
        """sync() follows."""


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
