# SPDX-License-Identifier: Apache-2.0
"""Calls of libhoro inside compiled programs: loads horo-jax.so and emits the calls.

Each collective becomes two calls. The first takes a number (a "ticket") for this run of the call
site. An effect of jax orders these calls, so the numbers are the same on all ranks. The second is
the collective, under the name of the call site and its number. Nothing orders those where jaxlib
has asynchronous calls. With an older jaxlib each call blocks a thread of XLA, so the effect orders
the collectives too, in the same way on all ranks. Such a jaxlib passes the effect's tokens only to
calls of an older kind, which the names "horo_jax_old_..." have.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from horo import _failures, _native
from horo.errors import LibraryError
from horo.jax._jax import (
    ASYNC_FROM,
    JAXLIB,
    TokenSet,
    custom_call,
    effects,
    ir,
    ir_type,
    jax,
    pycapsule,
    register_ffi_target,
    runtime_tokens,
)

asynchronous = JAXLIB >= ASYNC_FROM
_TARGETS = {"horo_jax_collective": 1}  # name -> version of the interface
if asynchronous:
    _TARGETS["horo_jax_ticket"] = 1
else:
    _TARGETS.update({"horo_jax_old_ticket": 0, "horo_jax_old_after": 0})


_LONGEST_FAILURE = 65536  # bytes of text that are read

_IN_PLACE = (_native.ALLREDUCE, _native.BROADCAST, _native.BARRIER)  # kinds that can be


class _Order(effects.Effect):
    __str__ = __repr__ = lambda self: "HoroOrder"


class _Call(effects.Effect):
    __str__ = __repr__ = lambda self: "HoroCall"


ORDER = _Order()
# It has no order and no token. jax starts what `lower().compile()` returns by a quick way that passes no tokens,
# unless the program has an effect without order, and XLA then misses an argument.
CALL = _Call()
effects.ordered_effects.add_type(_Order)
for _kinds in (
    effects.lowerable_effects,
    effects.control_flow_allowed_effects,
    effects.custom_derivatives_allowed_effects,
    effects.remat_allowed_effects,
):
    _kinds.add_type(_Order)
    _kinds.add_type(_Call)


def _load():
    """The module, whose functions XLA knows then."""
    folder = os.path.join(os.path.dirname(os.path.realpath(_native.path)), "horo")
    path = os.path.join(folder, "horo-jax.so")
    try:
        module = ctypes.CDLL(path)
    except OSError as error:
        raise LibraryError(
            f"cannot load {path}: {error}; horo.jax needs it inside jit: build Horo, or install its "
            "wheel"
        ) from None
    if not module.horo_jax_use_library(os.fsencode(_native.path)):
        raise LibraryError(f"{path} does not fit {_native.path}; install both from one release")
    for target, version in _TARGETS.items():
        function = pycapsule(getattr(module, target))
        register_ffi_target(target, function, platform="cpu", api_version=version)
    return module


_module: Any = None


def _need():
    global _module
    if _module is None:
        _module = _load()


def forget() -> None:
    """Forgets what programs have declared in an earlier job, or generation of a job."""
    if _module is not None:
        _module.horo_jax_forget()


def failures() -> int:
    """How many operations have failed inside programs so far."""
    count = ctypes.c_uint64()
    if _module is not None:
        _module.horo_jax_last_failure(ctypes.byref(count))
    return count.value


def last_failure() -> Exception | None:
    """The exception for the latest operation that failed inside a program; None: none has failed."""
    if not failures():
        return None
    text = ctypes.create_string_buffer(_LONGEST_FAILURE)
    _module.horo_jax_last_failure_text(text, ctypes.c_size_t(len(text)))
    return _failures.parsed(text.value.decode(errors="replace"))


class _Forgetful(dict):
    """Tokens of jax's effects, but not ours: no program hands its token to the next one. A device
    runs the programs of a thread in order anyway, a failed program would make all later ones fail,
    and handing over takes longer than a small collective. The last one is kept aside, since it tells
    when the thread's programs have ended."""

    def __init__(self, tokens):
        super().__init__(tokens)
        self.last = None
        _forgetful.append(self)

    def __setitem__(self, effect, token):
        if effect is ORDER:
            self.last = token
        else:
            super().__setitem__(effect, token)


_forgetful: list[_Forgetful] = []  # of all threads


def wait_for_programs() -> None:
    """Blocks until the programs with collectives that this process has started have ended."""
    for tokens in _forgetful:
        if tokens.last is not None:
            try:
                tokens.last.block_until_ready()
            except jax.errors.JaxRuntimeError:
                pass  # whoever reads the program's results is told


def forget_tokens() -> None:
    """Makes this thread's programs start with new tokens. Without it they are slower, and all fail
    after one has failed."""
    tokens = getattr(runtime_tokens, "current_tokens", None)
    if type(tokens) is dict:
        runtime_tokens.current_tokens = _Forgetful(
            (effect, token) for effect, token in tokens.items() if effect is not ORDER
        )


class _Sites(dict):
    """Counts the calls of each site within one program. jax keeps it with the program."""


def _number(context, site):
    """How often the site was in this program before."""
    kept = context.module_context.keepalives
    sites = next((one for one in kept if isinstance(one, _Sites)), None)
    if sites is None:
        sites = _Sites()
        context.module_context.add_keepalive(sites)
    sites[site] = sites.get(site, -1) + 1
    return sites[site]


def _is_kept_argument(value):
    """Whether the value is an argument of the program that its caller keeps."""
    block = value.owner
    if not isinstance(block, ir.Block):
        return False
    attributes = block.owner.attributes  # of a function, or of a loop
    if "sym_name" not in attributes or "arg_attrs" not in attributes:
        return False
    if str(attributes["sym_name"]) != '"main"':
        return False
    place = next(i for i, argument in enumerate(block.arguments) if argument == value)
    own = str(list(attributes["arg_attrs"])[place])
    return "tf.aliasing_output" not in own and "jax.buffer_donor" not in own


def _call(target, types, operands, attributes, ranks, aliases=None):
    """Emits a call. `attributes`: a dictionary; a text for the older kind of call. `ranks`: the
    numbers of dimensions of operands and of results."""
    layouts = [[tuple(reversed(range(rank))) for rank in side] for side in ranks]
    return custom_call(
        target,
        result_types=types,
        operands=operands,
        backend_config=attributes,
        has_side_effect=True,
        api_version=4 if isinstance(attributes, dict) else 3,
        operand_output_aliases=aliases,
        operand_layouts=layouts[0],
        result_layouts=layouts[1],
    ).results


def _take_ticket(token, site):
    """(token, ticket)"""
    types = [token.type, ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32))]
    ranks = ([0], [0, 0])
    if asynchronous:
        attributes = {"name": ir.StringAttr.get(site)}
        return _call("horo_jax_ticket", types, [token], attributes, ranks)
    return _call("horo_jax_old_ticket", types, [token], site, ranks)


def _attributes(name, spec, count):
    numbers = [
        *(spec.kind, spec.op, spec.set, spec.root, spec.ranks),
        *(*spec.wire, int(asynchronous), count),
    ]
    return {
        "name": ir.StringAttr.get(name),
        "parts": ir.StringAttr.get("\n".join(spec.parts or ())),
        "spec": ir.DenseI64ArrayAttr.get(numbers),
        "scales": ir.DenseF64ArrayAttr.get([spec.prescale, spec.postscale]),
    }


def lower(context, *operands, spec):
    """The lowering rule of the primitive for the CPU."""
    _need()
    forget_tokens()
    number = _number(context, (spec.kind, spec.set, spec.site))
    name = spec.site if number == 0 else f"{spec.site}.{number}"
    token = context.tokens_in.get(ORDER)
    token, ticket = _take_ticket(token, f"{spec.kind}.{spec.set}.{name}")
    types = [ir_type(context, aval) for aval in context.avals_out]
    aliases = {
        index: index
        for index, (operand, kind) in enumerate(zip(operands, types))
        if spec.kind in _IN_PLACE and operand.type == kind and not _is_kept_argument(operand)
    }
    attributes = _attributes(name, spec, len(operands))
    ins = [*(aval.ndim for aval in context.avals_in), 0]
    outs = [aval.ndim for aval in context.avals_out]
    given = [*operands, ticket]
    results = _call("horo_jax_collective", types, given, attributes, (ins, outs), aliases)
    if not asynchronous:
        after, ranks = [token, results[0]], ([0, outs[0]], [0])
        (token,) = _call("horo_jax_old_after", [token.type], after, "", ranks)
    context.set_tokens_out(context.tokens_in.update_tokens(TokenSet({ORDER: token})))
    return list(results)


def lower_elsewhere(context, *operands, spec):
    """The lowering rule for all other platforms."""
    raise NotImplementedError(
        f"horo.jax: {spec.site}: collectives inside jit run on the CPU only; compile this part with "
        'jax.default_device(jax.devices("cpu")[0]), or call it outside jit with arrays of the CPU'
    )
