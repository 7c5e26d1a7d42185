# SPDX-License-Identifier: Apache-2.0
"""The kinds of horo.run()'s arguments."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _is_number(value):
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def _is_count(value):
    return _is_number(value) and value >= 1


def _is_time(value):
    return (_is_number(value) or isinstance(value, float)) and 0 <= value < math.inf


def _is_list_of_arguments(value):
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, bytearray))


def _is_text(value):
    return isinstance(value, (str, os.PathLike))


def _is_switch(value):
    return isinstance(value, bool) or (_is_number(value) and value >= 0)


def _is_list_of_names(value):
    return (
        not isinstance(value, str)
        and isinstance(value, Sequence)
        and all(isinstance(name, str) for name in value)
    )


def _is_name_or_list(value):
    return isinstance(value, str) or _is_list_of_names(value)


def _is_pair_of_times(value):
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or len(value) != 2:
        return False
    return all(_is_count(one) for one in value) and value[0] <= value[1]


_COUNT = (_is_count, "a whole number of 1 or more")
_TEXT = (_is_text, "a text")
_SWITCH = (_is_switch, "True or False")

# Argument -> what it must be, as a test and in words. None is always allowed, where it is a default.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "func": (callable, "a function"),
    "args": (_is_list_of_arguments, "a tuple of arguments"),
    "kwargs": (lambda value: isinstance(value, Mapping), "a dict of arguments"),
    "num_proc": _COUNT,
    "np": _COUNT,
    "min_num_proc": _COUNT,
    "min_np": _COUNT,
    "max_num_proc": _COUNT,
    "max_np": _COUNT,
    "slots": _COUNT,
    "reset_limit": (lambda value: _is_number(value) and value >= 0, "a whole number of 0 or more"),
    "cooldown_range": (_is_pair_of_times, "the least and the most seconds, as two whole numbers"),
    "elastic_timeout": (_is_time, "a finite number of seconds, 0 or more"),
    "hosts": _TEXT,
    "hostfile": _TEXT,
    "start_timeout": (_is_time, "a finite number of seconds, 0 or more"),
    "ssh_port": (lambda value: _is_number(value) and 0 <= value < 65536, "a port, 0 to 65535"),
    "ssh_identity_file": _TEXT,
    "disable_cache": _SWITCH,
    "output_filename": _TEXT,
    "verbose": _SWITCH,
    "use_gloo": _SWITCH,
    "use_mpi": _SWITCH,
    "mpi_args": _TEXT,
    "network_interface": (_is_name_or_list, "names separated by commas"),
    "executable": _TEXT,
    "network_interfaces": (_is_list_of_names, "a list of names"),
    "host_discovery_script": _TEXT,
}
_NEVER_NONE = ("func", "args", "num_proc")


def check_arguments(arguments: dict[str, Any]) -> None:
    """`arguments`: from names to values. Fails: ValueError, which names the first wrong one."""
    for name, (fits, words) in _KINDS.items():
        value = arguments[name]
        if value is None and name not in _NEVER_NONE:
            continue
        if not fits(value):
            raise ValueError(f"{name} is {value!r}; give {words}")
