# SPDX-License-Identifier: Apache-2.0
"""Pickled objects that have passed between hosts are unpickled only with the job's signature."""

import pytest

from job import run_alone, run_on_two_hosts

# A job of one rank that takes its set for one on several hosts, whose messages `change` can spoil.
HOSTS = '''
import os
import horo.numpy as horo
from horo import _byte_rows, _job, _objects

class Evil:
    def __reduce__(self):
        return os._exit, (66,)  # ends the process when it is unpickled

horo.init()
_job.backend = lambda number: "tcp"
_job.key = lambda purpose: purpose.encode().ljust(32, b"k")
change = bytes

class Spoiling:
    """Sends all rows as `change` makes them."""

    start_broadcast = _byte_rows.BYTES.start_broadcast

    @staticmethod
    def start_allgather(given, *rest, **named):
        rows = _byte_rows.ByteRows(bytearray(change(given.data)))
        return _byte_rows.BYTES.start_allgather(rows, *rest, **named)

_objects.BYTES = Spoiling
'''


def test_objects_pass_with_their_signature():
    done = run_alone(
        HOSTS
        + """
value = {"a": [1, 2.5], "b": "text" * 1000}
assert horo.broadcast_object(value) == value
assert horo.broadcast_object(value, name="given") == value
assert horo.allgather_object(value) == [value]
assert horo.allgather_object(None, name="given") == [None]
"""
    )
    assert done.code == 0, done.output


@pytest.mark.parametrize(
    "change",
    (
        "bytes(data[:12]) + bytes([data[12] ^ 1]) + bytes(data[13:])",  # one bit
        "bytes(data[:-1]) + bytes([data[-1] ^ 1])",  # one bit of the signature
        "_objects.pickle.dumps(Evil()) + bytes(32)",  # another object, without the key
        "b'short'",
        "b''",
    ),
)
def test_a_changed_object_is_not_unpickled(change):
    done = run_alone(
        HOSTS
        + f"""
change = lambda data: {change}
try:
    horo.allgather_object("value")
    raise SystemExit("it was unpickled")
except horo.HoroError as error:
    assert "the object of rank 0 was changed" in str(error), error
    assert "it is not unpickled" in str(error), error
"""
    )
    assert done.code == 0, done.output


def test_a_receiver_refuses_a_changed_broadcast():
    """The receiver's part alone, with the messages that a root would have sent."""
    done = run_alone(
        HOSTS
        + """
import pickle
from horo._objects import _LENGTH, _Seal

class Names:
    def __init__(self, number):
        self.set = number

def sent(body, seal):
    head = bytearray(_LENGTH.pack(len(body)))
    head += seal.sign(b"body", 7, body)
    return head + seal.sign(b"head", 7, head), bytearray(body)

def receive(messages):
    queue = list(messages)
    def start(given, target, *rest):
        target.data[:] = queue.pop(0)
        return target
    _objects.BYTES = type("Fake", (), {"start_broadcast": staticmethod(start)})
    _objects._handles = type("Fake", (), {"synchronize": staticmethod(lambda one: one)})
    return horo.broadcast_object(None, root_rank=7)

def refused(messages):
    try:
        receive(messages)
    except horo.HoroError as error:
        return "the object of rank 7 was changed" in str(error)

seal = _Seal(Names(0), None)
head, body = sent(pickle.dumps([1, 2]), seal)
assert receive((head, body)) == [1, 2]
assert refused((head, bytearray(pickle.dumps([1, 3]))))
longer = bytearray(head)
longer[0] += 1
assert refused((longer, body + b"x"))
_job.key = lambda purpose: b"x" * 32
evil = sent(pickle.dumps(Evil()), _Seal(Names(0), None))
_job.key = lambda purpose: purpose.encode().ljust(32, b"k")
assert refused(evil)
assert refused(sent(pickle.dumps([1, 2]), _Seal(Names(0), "another name")))
assert refused(sent(pickle.dumps([1, 2]), _Seal(Names(1), None)))  # an object of another set
"""
    )
    assert done.code == 0, done.output


def test_ranks_of_two_hosts_exchange_signed_objects():
    """Two processes that take each other for ranks on other hosts."""
    ranks = run_on_two_hosts(
        """
        import horo.numpy as horo
        from horo import _job
        horo.init()
        assert _job.backend(0) == "tcp" and len(_job.key("objects")) == 32, _job.backend(0)
        value = {"from": horo.rank(), "text": "x" * 10000}
        assert horo.broadcast_object(value, root_rank=1)["from"] == 1
        assert [one["from"] for one in horo.allgather_object(value)] == [0, 1]
        alone = horo.add_process_set([0]), horo.add_process_set([1])
        assert horo.allgather_object(value, process_set=alone[horo.rank()]) == [value]
        keys = horo.allgather_object(_job.key("one"))
        assert keys[0] == keys[1] != _job.key("two")
        horo.shutdown()
        """
    )
    for rank in ranks:
        assert rank.code == 0, rank.output
