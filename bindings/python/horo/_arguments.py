# SPDX-License-Identifier: Apache-2.0
"""Arguments that every framework's collectives share: reduce operations and whole numbers."""

from __future__ import annotations

import operator

AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT = range(6)  # horo_reduce_op
OP_NAMES = ("Average", "Sum", "Adasum", "Min", "Max", "Product")


def resolve_op(average, op):
    """The operation that `op`, or the deprecated `average`, asks for. Fails: ValueError."""
    if average is not None:
        import warnings

        if op is not None:
            raise ValueError("give either op or average, not both; average is deprecated")
        warnings.warn("average= is deprecated; use op=", DeprecationWarning, stacklevel=4)
        return AVERAGE if average else SUM
    if op is None:
        return AVERAGE
    if op not in range(len(OP_NAMES)):
        raise ValueError(f"op {op!r} is not one of {', '.join(OP_NAMES)}")
    return int(op)  # it may be a number of numpy


BY_KNOBS = (0, 0)  # what a tensor gets that asks for nothing
WIRE_DTYPES = {"none": 1, "bfloat16": 2, "float16": 3}  # horo_wire_dtype


def resolve_wire(wire_dtype, error_feedback):
    """The pair (horo_wire_dtype, wire_feedback) that these ask for. `wire_dtype` is a name, or a
    dtype of the framework. Fails: ValueError."""
    if wire_dtype is None and error_feedback is None:
        return BY_KNOBS
    if error_feedback not in (None, True, False):
        raise ValueError(f"error_feedback is {error_feedback!r}; it must be True, False or None")
    feedback = 0 if error_feedback is None else 1 if error_feedback else -1
    if wire_dtype is None:
        return 0, feedback
    # "torch.bfloat16", and the classes numpy.float16 and ml_dtypes.bfloat16
    name = str(getattr(wire_dtype, "__name__", wire_dtype)).rpartition(".")[2]
    if name not in WIRE_DTYPES:
        raise ValueError(f"wire_dtype {wire_dtype!r} is not one of {', '.join(WIRE_DTYPES)}")
    return WIRE_DTYPES[name], feedback


def whole_number(given, what, bits=32):
    """`given` as an int that fits into a signed integer of `bits` bits. `what` names the argument
    in the error message. Fails: ValueError."""
    try:
        number = operator.index(given)
    except TypeError:
        raise ValueError(f"{what} is {given!r}, which is not a whole number") from None
    if number.bit_length() >= bits:
        raise ValueError(f"{what} is {number}, which is out of range")
    return number


def whole_numbers(splits):
    """The splits of an alltoall, given as a list or an array, as a list of int; None when none are
    given. Fails: ValueError."""
    if splits is None:
        return None
    rule = "splits must be whole numbers in one dimension, one per rank"
    try:
        numbers = list(splits)
    except TypeError:
        raise ValueError(rule) from None
    return [whole_number(number, f"{rule}; one", 64) for number in numbers] or None
