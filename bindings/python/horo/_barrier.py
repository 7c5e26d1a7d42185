# SPDX-License-Identifier: Apache-2.0
"""Collectives without data: barrier and join."""

from __future__ import annotations

import ctypes
import time

from horo import _handles, errors
from horo._failures import failure
from horo._names import declare
from horo._native import BARRIER, JOIN
from horo._sets import ProcessSet, global_process_set, of


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Blocks until all ranks of the set have called it. Several threads may call it at the same
    time."""
    wait_for_all(of(process_set))


def wait_for_all(names):
    """barrier(), for the names of a set."""
    record = names.unnamed[BARRIER]()
    while True:
        try:
            _declare_once(record, BARRIER)
            handle = _handles.submit(record, None, None)
            break
        except errors.DuplicateNameError:  # very many threads: this name is still in flight
            time.sleep(0.001)
    status = _handles.wait(handle)
    error = failure(status) if status else None
    _handles.take(handle)
    if error is not None:
        raise error


def join(process_set: ProcessSet = global_process_set) -> int:
    """Tells the set that this rank has no more data, and blocks until all its ranks have joined.
    Until then this rank takes part in their allreduces without changing a sum. Returns the rank
    that joined last, which is the same on all ranks. When interrupted, call it again."""
    names = of(process_set)
    record = names.join
    if not record.handle:
        _declare_once(record, JOIN)
        _handles.submit(record, None, None)
    status = _handles.wait(record.handle)
    handle, record.handle = record.handle, 0
    address, _, _ = _handles.result_of(handle, 0, status)
    last = ctypes.c_int32.from_address(address).value
    _handles.take(handle)
    names.restart()
    return last


def _declare_once(record, kind):
    if record.signature is None:
        declare(record, kind, "uint8", ())
        record.signature = ()
