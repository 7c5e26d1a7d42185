# SPDX-License-Identifier: Apache-2.0
"""Averages the gradients of a step."""

from __future__ import annotations

from horo._arguments import AVERAGE, whole_number
from horo._handles import synchronize
from horo.mxnet._face import FACE, MXNET


def check_options(predivide, groups):
    """Fails: ValueError (one of them is wrong)."""
    if not predivide > 0:
        raise ValueError(f"gradient_predivide_factor is {predivide!r}; it must be positive")
    if whole_number(groups, "num_groups") < 0:
        raise ValueError(f"num_groups is {groups}; it must be 0 or more")


def average(named, names, predivide=1.0, groups=0):
    """Averages (name, array) pairs in place over the ranks of `names`, all at once. `predivide`: the
    sum is divided by it before it is made, and multiplied by it afterwards. `groups`: the number of
    groups whose members are reduced together; 0: each array as soon as all ranks have it.

    The last array is submitted first: backward computes its gradient first."""
    factors = (1.0 / predivide, predivide)
    named = [(name, FACE.array(array)) for name, array in reversed(named)]
    for _, array in named:
        FACE.check(array)
    handles = []
    for members in _chunks(named, groups):
        arrays = [array for _, array in members]
        if groups:
            name = f"{members[0][0]}.group"
            start = MXNET.start_allreduces(arrays, arrays, names, name, AVERAGE, factors)
        else:
            start = MXNET.start_allreduce(
                arrays[0], arrays[0], names, members[0][0], AVERAGE, *factors
            )
        handles.append(start)
    _wait_for(handles)


def _chunks(named, groups):
    """Lists of one pair each, or `groups` lists of neighbours."""
    if not groups:
        return [[pair] for pair in named]
    count, start, chunks = min(groups, len(named)), 0, []
    for index in range(count):
        length = len(named) // count + (index < len(named) % count)
        chunks.append(named[start : start + length])
        start += length
    return chunks


def _wait_for(handles):
    """Waits for all of them; then raises the first error, so that no operation is left in flight."""
    first_error = None
    for handle in handles:
        try:
            synchronize(handle)
        except Exception as error:
            first_error = first_error or error
    if first_error is not None:
        raise first_error
