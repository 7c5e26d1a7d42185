# SPDX-License-Identifier: Apache-2.0
"""From the arguments of a call to the spec of its primitive."""

from __future__ import annotations

from horo import _job, _sets
from horo._arguments import resolve_op, resolve_wire, whole_number
from horo._native import ALLREDUCE, REDUCESCATTER
from horo.jax._face import refuse
from horo.jax._jax import Tracer, jax
from horo.jax._primitive import bind
from horo.jax._sites import site
from horo.jax._spec import Spec, check_shapes


def traced(*arrays):
    """Whether jax transforms or compiles the call."""
    return any(isinstance(array, Tracer) for array in arrays)


def _real(array):
    """Complex numbers as pairs of real ones."""
    return jax.numpy.stack([array.real, array.imag], axis=-1)


def run(spec, arrays):
    """Runs the collective on tracers, of which some may be arrays. Returns a list."""
    arrays = [jax.numpy.asarray(array) for array in arrays]
    factors = (spec.prescale, spec.postscale) if spec.kind in (ALLREDUCE, REDUCESCATTER) else (1.0, 1.0)
    for array in arrays:
        refuse(array.dtype, spec.op, factors)
    check_shapes(spec.kind, [array.shape for array in arrays], spec.ranks)
    complexes = [jax.numpy.iscomplexobj(array) for array in arrays]
    given = [_real(one) if is_complex else one for one, is_complex in zip(arrays, complexes)]
    results = bind(spec, given)
    return [
        jax.lax.complex(one[..., 0], one[..., 1]) if is_complex else one
        for one, is_complex in zip(results, complexes)
    ]


def spec_of(kind, name, process_set, **more):
    """The spec of a call. Fails: ValueError (not a member of the set)."""
    names = _sets.of(process_set)
    return Spec(
        *(kind, site(name), names.set, names.size(), names.rank()), named=name is not None, **more
    )


def reduced(kind, name, process_set, op, prescale, postscale, wire=(None, None)):
    """The spec of an allreduce or a reducescatter. Fails: ValueError."""
    return spec_of(
        *(kind, name, process_set),
        op=resolve_op(None, op),
        prescale=float(prescale),
        postscale=float(postscale),
        wire=resolve_wire(*wire),
    )


def rooted(kind, name, process_set, root_rank):
    """The spec of a broadcast. Fails: ValueError."""
    root = whole_number(root_rank, "root_rank")
    return spec_of(kind, name, process_set, root=root, roots_here=_job.rank() == root)
