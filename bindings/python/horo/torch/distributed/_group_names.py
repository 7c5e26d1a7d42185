# SPDX-License-Identifier: Apache-2.0
"""The names by which the ranks of one torch.distributed group agree on its operations.

Every rank of a group starts the group's collectives in the same order. So the n-th collective with the
same key, which says what all ranks know alike, has the same name on all of them. A key has a fixed number
of names, used in turn, so that in a steady state nothing is declared again.
"""

from __future__ import annotations

from horo._names import Record, declare

IN_TURN = 32  # operations of one key that may be in flight
MESSAGES = 256  # messages from one rank to another with one tag that may be in flight
KEYS = 4096  # keys of collectives that are remembered


class Turn:
    """The names of one key."""

    __slots__ = ("count", "entries", "text")

    def __init__(self, text, most):
        self.text = text
        self.count = 0
        self.entries = [None] * most


class Entry:
    """One name, and the operation that uses it, or has used it last."""

    __slots__ = ("record", "operation", "number", "text")

    def __init__(self, record):
        self.record = record
        self.operation = None
        self.number = 0  # which of its key's operations uses it
        self.text = ""  # the key


class GroupNames:
    """The names of one group. Thread: any; collectives of one group must not start at the same time in
    two threads, as with every backend."""

    def __init__(self, group):
        self.group = group
        self._turns = {}  # keys of collectives
        self._messages = {}  # keys of messages, which only two ranks have, and which are kept
        self._age = 0  # how often the keys of collectives were dropped

    def next(self, set_number, text, most=IN_TURN, refuse=None):
        """The entry for the next operation of a key, in a process set. The operation that has used it
        before may still be in flight; refuse() is raised then, if it is given: for a message."""
        turns = self._turns if refuse is None else self._messages
        turn = turns.get(text)
        if turn is None:
            # All ranks of the group drop the keys at the same call. Operations under the old names may
            # be in flight, so the names are new.
            if refuse is None and len(turns) >= KEYS:
                turns.clear()
                self._age += 1
            turn = turns[text] = Turn(text, most)
        index = turn.count % most
        entry = turn.entries[index]
        if entry is None:
            age = f"/{self._age}" if self._age and refuse is None else ""
            entry = Entry(Record(f"{self.group}/{text}/{index}{age}", set_number))
            entry.text = text
            turn.entries[index] = entry
        elif refuse is not None and entry.operation is not None and not entry.operation.poll():
            raise refuse()
        entry.number = turn.count
        turn.count += 1
        return entry

    def has_begun(self, operation):
        """Whether this rank has begun the operation [key, number]."""
        text, number = operation
        turn = self._turns.get(text) or self._messages.get(text)
        return turn is not None and turn.count > number


def declare_entry(entry, kind, dtype, shape, op=1, root=0, scales=(1.0, 1.0)):
    """Declares the entry's name with this signature, unless it has it."""
    record = entry.record
    signature = (kind, dtype, shape, op, root, scales)
    if record.signature != signature:
        declare(record, kind, dtype, shape, op, root, *scales)
        record.signature = signature
    return record
