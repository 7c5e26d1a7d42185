# SPDX-License-Identifier: Apache-2.0
"""The primitive behind all collectives under transformations of jax, with their rules.

It takes several arrays, which become ready together. Derivatives are those of the function of all
ranks' arrays: the derivative of a sum is a sum, that of an allgather a reducescatter. So the
gradient of a rank's array is that of the sum of all ranks' losses.
"""

from __future__ import annotations

import jax.numpy as jnp

from horo import _sets
from horo._arguments import AVERAGE, SUM
from horo._barrier import wait_for_all
from horo._handles import synchronize
from horo._native import ALLGATHER, ALLREDUCE, ALLTOALL, BARRIER, BROADCAST, REDUCESCATTER
from horo._operations import Operations
from horo.jax import _ffi
from horo.jax._face import JaxFace
from horo.jax._jax import Primitive, ad, batching, register_lowering
from horo.jax._spec import need_batchable, need_linear, shapes

FACE = JaxFace()
OPERATIONS = Operations(FACE)

collective = Primitive("horo_collective")
collective.multiple_results = True


def bind(spec, arrays):
    """Runs the collective on arrays or tracers."""
    return collective.bind(*arrays, spec=spec)


@collective.def_effectful_abstract_eval
def _abstract(*avals, spec):
    results = shapes(spec, [aval.shape for aval in avals])
    made = [aval.update(shape=tuple(shape), weak_type=False) for aval, shape in zip(avals, results)]
    return made, {_ffi.ORDER, _ffi.CALL}


# -- Outside jit, under grad or vmap -----------------------------------------------------------------


def _start(spec, arrays, names, name):
    """One handle, whose result is a list."""
    factors = spec.prescale, spec.postscale
    if spec.kind == ALLREDUCE:
        targets = [FACE.empty_like(array) for array in arrays]
        return OPERATIONS.start_allreduces(
            arrays, targets, names, name, spec.op, factors, spec.wire
        )
    if spec.kind == REDUCESCATTER:
        return OPERATIONS.start_reducescatters(arrays, names, name, spec.op, factors)
    return OPERATIONS.start_allgathers(arrays, names, name)


def _one_by_one(spec, arrays, names, name):
    results = []
    for index, array in enumerate(arrays):
        own = None if name is None else f"{name}.{index}"
        if spec.kind == BROADCAST:
            target = FACE.empty_like(array)
            handle = OPERATIONS.start_broadcast(array, target, spec.root, names, own)
        else:
            handle = OPERATIONS.start_alltoall(array, None, names, own)
        results.append(handle)
    values = [synchronize(handle) for handle in results]
    return [value[0] for value in values] if spec.kind == ALLTOALL else values


@collective.def_impl
def _run(*arrays, spec):
    names, name = _sets.names_of(spec.set), spec.site if spec.named else None
    if spec.kind == BARRIER:
        for array in arrays:
            array.block_until_ready()
        wait_for_all(names)
        return list(arrays)
    given = [FACE.array(array) for array in arrays]
    if spec.kind in (BROADCAST, ALLTOALL):
        return _one_by_one(spec, given, names, name)
    return synchronize(_start(spec, given, names, name))


# -- Derivatives -------------------------------------------------------------------------------------


def _jvp(primals, tangents, *, spec):
    results = bind(spec, primals)
    if spec.kind == BARRIER:  # it returns what it is given
        return results, tangents
    if all(type(tangent) is ad.Zero for tangent in tangents):
        return results, [ad.Zero.from_primal_value(result) for result in results]
    need_linear(spec)
    tangents = [ad.instantiate_zeros(tangent) for tangent in tangents]
    return results, bind(spec.also(".jvp"), tangents)


def _transposed(spec, given):
    """The spec of the operation that takes the cotangents back to operands of `given` shapes."""
    if spec.kind == ALLREDUCE:
        return spec.also(".back")
    if spec.kind == BROADCAST:
        return spec.also(".back", kind=ALLREDUCE, op=SUM)
    if spec.kind == ALLGATHER:
        return spec.also(".back", kind=REDUCESCATTER, op=SUM, rows=None)
    if spec.kind == REDUCESCATTER:
        rows = tuple(shape[0] for shape in given)
        return spec.also(".back", kind=ALLGATHER, rows=rows)
    return spec.also(".back")


def _after(spec, gradients):
    """Scales the gradients, or clears them, after the operation."""
    if spec.kind == BROADCAST and not spec.roots_here:
        return [jnp.zeros_like(gradient) for gradient in gradients]
    if spec.kind == REDUCESCATTER:
        scale = spec.prescale * spec.postscale / (spec.ranks if spec.op == AVERAGE else 1)
        return [gradient if scale == 1 else gradient * scale for gradient in gradients]
    return gradients


def _transpose(cotangents, *operands, spec):
    need_linear(spec)
    if all(type(cotangent) is ad.Zero for cotangent in cotangents):
        return [ad.Zero(operand.aval) for operand in operands]
    cotangents = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    back = _transposed(spec, [operand.aval.shape for operand in operands])
    return _after(spec, bind(back, cotangents))


ad.primitive_jvps[collective] = _jvp
ad.primitive_transposes[collective] = _transpose


# -- vmap --------------------------------------------------------------------------------------------


def _batch(operands, places, *, spec):
    need_batchable(spec)
    if spec.kind in (ALLREDUCE, BROADCAST, BARRIER):
        return bind(spec, operands), places
    # Dimension 0 belongs to the collective, so the batch becomes dimension 1.
    moved = [
        operand if place is None else jnp.moveaxis(operand, place, 1)
        for operand, place in zip(operands, places)
    ]
    return bind(spec, moved), [None if place is None else 1 for place in places]


batching.primitive_batchers[collective] = _batch

register_lowering(collective, _ffi.lower_elsewhere)
register_lowering(collective, _ffi.lower, platform="cpu")
