# SPDX-License-Identifier: Apache-2.0
"""Process sets that only their members ask for.

Horo adds a process set when all ranks of the job ask for it, in one order. torch.distributed makes
groups, and sends between two ranks, without the other ranks taking notice. So each rank has a thread
that adds and removes sets in the order in which rank 0 announces them. Rank 0 announces a set when
the first member asks for it, and its end when the last one has given it back. The program's own
threads wait only for sets that they use themselves.
"""

from __future__ import annotations

import ctypes
import json
import threading
import time

from horo import errors
from horo._failures import check
from horo._native import slow
from horo._sets import get_process_set_ids_and_ranks


class Members:
    """This rank's sets and its thread. Thread: any."""

    def __init__(self, line, answer):
        """`line` is the connection to rank 0, which this object owns. `answer(question)` says what
        this rank has done, as a value that JSON can hold; it must not block."""
        self._line = line
        self._answer = answer
        self._changed = threading.Condition()
        self._sets = {}  # ranks -> number
        self._own = set()  # ranks of those that the thread has added
        self._failed = {}  # ranks -> exception
        self._granted = set()
        self._replies = {}
        self._last = 0
        self._ended = None
        self._thread = threading.Thread(target=self._serve, name="horo-groups", daemon=True)
        self._thread.start()

    # -- For the program's threads ---------------------------------------------------------------

    def take(self, ranks, timeout_s):
        """The number of the process set of these ranks, ascending. Blocks until all ranks of the job
        have added it. Fails: TimeOutError, ResourceError (256 sets), PeerLostError, ShutDownError."""
        ranks = tuple(ranks)
        with self._changed:
            request = self._ask(want=ranks)
            if not self._wait(lambda: request in self._granted, timeout_s):
                raise errors.TimeOutError(
                    f"no process set of ranks {list(ranks)} after {timeout_s:.0f} s: a rank of the job does not "
                    "respond; the stall report names it"
                )
            self._granted.discard(request)
            if ranks in self._failed:
                self._ask(drop=ranks)
                raise self._failed[ranks]
            return self._sets[ranks]

    def give(self, ranks):
        """This rank does not use the set any more. Blocks: no."""
        with self._changed:
            if self._ended is None:
                self._ask(drop=tuple(ranks))

    def ask_ranks(self, ranks, question, timeout_s):
        """The answers of these ranks, by rank, as far as they come in time."""
        with self._changed:
            request = self._ask(question=question, ranks=list(ranks))
            found = self._replies[request] = {}
            self._wait(lambda: len(found) == len(ranks), timeout_s, fails=False)
            del self._replies[request]
            return dict(found)

    def _ask(self, **message):
        self._need()
        self._last += 1
        self._line.send({"id": self._last, **message})
        return self._last

    def _need(self):
        if self._ended is not None:
            raise self._ended

    def _wait(self, done, timeout_s, fails=True):
        end = time.monotonic() + timeout_s
        while not done():
            if self._ended is not None:
                if fails:
                    raise self._ended
                return False
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._changed.wait(min(left, 1e6))
        return True

    def hang_up(self):
        """Asks for nothing and announces nothing any more."""
        self._line.close()

    def close(self):
        """After hang_up(), and once the job has ended: ends the thread."""
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # -- The thread ------------------------------------------------------------------------------

    def _serve(self):
        end = "rank 0 has left the job"
        try:
            for message in self._line.messages():
                self._handle(message)
        except (errors.HoroError, OSError, ValueError) as error:
            end = str(error)
        with self._changed:
            self._ended = errors.ShutDownError(f"no process set can be added or removed any more: {end}")
            self._changed.notify_all()

    def _handle(self, message):
        if "add" in message:
            self._add(tuple(message["add"]))
        elif "remove" in message:
            self._remove(tuple(message["remove"]))
        elif "question" in message:
            answer = self._answer(message["question"])
            self._line.send({"to": message["from"], "answer": answer})
        else:
            with self._changed:
                if "granted" in message:
                    self._granted.add(message["granted"])
                elif message["reply"] in self._replies:
                    self._replies[message["reply"]][message["rank"]] = message["answer"]
                self._changed.notify_all()

    def _add(self, ranks):
        number, failed = ctypes.c_uint32(), None
        listed = (ctypes.c_int * len(ranks))(*ranks)
        try:
            check(slow.horo_add_process_set(ctypes.addressof(listed), len(ranks), number))
            self._own.add(ranks)
        except errors.DuplicateNameError:  # the program has added it by horo.add_process_set()
            number.value = _number_of(ranks)
        except (errors.HoroError, ValueError) as error:
            failed = error
        with self._changed:
            if failed is None:
                self._failed.pop(ranks, None)
                self._sets[ranks] = number.value
            else:
                self._failed[ranks] = failed

    def _remove(self, ranks):
        with self._changed:
            number = self._sets.pop(ranks, None)
        if ranks in self._own:
            self._own.discard(ranks)
            check(slow.horo_remove_process_set(number))


def _number_of(ranks):
    found = get_process_set_ids_and_ranks()
    return next(number for number, members in found.items() if tuple(members) == ranks)


class Line:
    """JSON messages, one a line, over a socket. Thread: any may send, one reads."""

    def __init__(self, connection):
        self._socket = connection
        self._sends = threading.Lock()

    def send(self, message):
        with self._sends:
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def messages(self):
        """All messages until the other end closes."""
        with self._socket.makefile("rb") as file:
            for line in file:
                yield json.loads(line)

    def close(self):
        try:
            self._socket.shutdown(2)
        except OSError:
            pass
        self._socket.close()
