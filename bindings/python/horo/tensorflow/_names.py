# SPDX-License-Identifier: Apache-2.0
"""The names under which the ranks agree on the tensors of an op.

Eager calls use the process set's table of names, as every framework does. In a graph an op has one
name for all its executions: the user's, or the name of the traced function and the number of the
call in it. All ranks trace the same calls in the same order, so their numbers are equal; how often a
rank traces makes no difference.
"""

from __future__ import annotations

import weakref

import tensorflow as tf

from horo._names import KIND_NAMES

_PREFIX = "tf."  # tensors of other frameworks in this process have other names


class _Trace:
    """Counts the calls in one graph that is being made."""

    __slots__ = ("calls", "guard", "last")

    def __init__(self):
        self.calls = 0
        self.guard = None  # the input of the graph's collectives that is never a constant
        self.last = None  # where kernels block: the last op of the graph, which the next one follows


_traces: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def outermost(graph):
    """The graph of the function that the program calls."""
    while getattr(graph, "outer_graph", None) is not None and graph.outer_graph.building_function:
        graph = graph.outer_graph
    return graph


def trace_of(graph):
    """The _Trace of a graph."""
    found = _traces.get(graph)
    if found is None:
        found = _traces[graph] = _Trace()
    return found


def call_name(kind: int, given: str | None) -> str | None:
    """The name of a call: the user's, in a graph also without one; None for an eager call without
    a name."""
    if given is not None or tf.executing_eagerly():
        return given
    graph = outermost(tf.compat.v1.get_default_graph())
    trace = trace_of(graph)
    trace.calls += 1
    return f"{getattr(graph, 'name', 'graph')}.{trace.calls}"


def tensor_names(names, kind: int, given: str | None, parts: list[str] | int) -> list[str]:
    """The names of the tensors of one op. `names`: those of the process set. `parts`: the number of
    tensors, or what tells each from the others."""
    given = call_name(kind, given)
    if given is not None:
        base = f"{_PREFIX}{KIND_NAMES[kind]}.{given}"
        if parts == 1:
            return [base]
        return [f"{base}.{part}" for part in (range(parts) if isinstance(parts, int) else parts)]
    count = parts if isinstance(parts, int) else len(parts)
    if count == 1:
        return [_PREFIX + names.record(kind, None).name.decode()]
    return [_PREFIX + record.name.decode() for record in names.group(kind, None, count)[0]]
