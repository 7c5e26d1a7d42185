# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: reduces each gradient over all ranks while backward goes on.

The class here only connects torch to horo._optimizer.reducer: it hooks the parameters and lets
step(), synchronize() and zero_grad() go through the Reducer.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import torch

from horo import _handles, _job
from horo._arguments import ADASUM, AVERAGE, resolve_op, resolve_wire
from horo._elastic.generation import is_elastic
from horo._objects import broadcast_object
from horo._optimizer.agreement import names_of
from horo._optimizer.gradient_life import Group
from horo._optimizer.reducer import Reducer, compare, whole_passes
from horo._sets import WORLD, existing, global_process_set
from horo.torch._adasum import class_over as adasum_class_over
from horo.torch._compression import Compression
from horo.torch._copies import Copied, class_of
from horo.torch._gradients import Gradient, Plan, describe

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer

    from horo._sets import ProcessSet
    from horo.torch._compression import Compressor


class _Distributed(Copied):
    """Comes before an optimizer's class; shares the original's groups and state."""

    def _horo_setup(self, plan, named, passes, groups, process_set):
        """`named`: (parameter, name) pairs of the optimizer's parameters."""
        self._horo_plan = plan
        self._horo_names = dict(named)
        self._horo_reducer = reducer = Reducer(passes)
        self._horo_hooks: list[Any] = []
        self._horo_frozen: list[Any] = []  # (parameter, name) pairs that require no gradient
        self._horo_comparison: Any = None  # arguments of compare()
        reducer.renews_by(self._horo_renew)
        if _reduces_nothing(plan.names):
            return
        trained = [pair for pair in named if pair[0].requires_grad]
        self._horo_frozen = [pair for pair in named if not pair[0].requires_grad]
        described = describe([(name, parameter) for parameter, name in trained])
        self._horo_comparison = (process_set, described, next(plan.names.optimizers))
        # Before the process joins the job, it can compare nothing: it does so in its first step.
        reducer.stale = _job.is_planned()
        agreement = None if reducer.stale else compare(plan.names, *self._horo_comparison)
        gradients = [Gradient(parameter, name, plan) for parameter, name in trained]
        _make_groups(gradients, groups, process_set)
        self._horo_add(gradients)
        if agreement is not None:
            reducer.agree(agreement)
        _handles.sweep()
        # An optimizer that nobody holds any more must not go on reducing its model's gradients.
        gone = weakref.finalize(self, _detach, self._horo_hooks, reducer)
        gone.atexit = False

    def _horo_add(self, gradients):
        self._horo_reducer.add(gradients)
        for gradient in gradients:
            if self._horo_plan.share is True and not self._horo_reducer.stale:
                gradient.reserve()
            self._horo_hooks.append(_attach(gradient.parameter, gradient.computed))

    def _horo_renew(self):
        """Declares the gradients in a job that was initialised again. The ranks compare them again,
        because some may have come anew."""
        plan = self._horo_plan
        if self._horo_comparison is None:
            return
        if plan.names is not WORLD:
            raise ValueError(
                "this optimizer reduces over a process set that ended with the last generation of "
                "the job, or with shutdown(); make another one over a set of this generation"
            )
        reducer = self._horo_reducer
        for gradient in reducer.gradients:
            gradient.renew()
        reducer.restart()
        reducer.agree(compare(plan.names, *self._horo_comparison))

    def add_param_group(self, *args, **kwargs):
        """Like the optimizer's own, on all ranks. The group's gradients are reduced too."""
        super().add_param_group(*args, **kwargs)
        named = names_of(self.param_groups[-1:], None, self._horo_plan.names)
        self._horo_names.update(named)
        if not _reduces_nothing(self._horo_plan.names):
            self._horo_frozen += named
            self._horo_thaw()

    def _horo_thaw(self):
        """Reduces the parameters that require a gradient by now, as on all ranks."""
        thawed = [pair for pair in self._horo_frozen if pair[0].requires_grad]
        if thawed:
            self._horo_frozen = [pair for pair in self._horo_frozen if not pair[0].requires_grad]
            self._horo_add(
                [Gradient(parameter, name, self._horo_plan) for parameter, name in thawed]
            )

    @property
    def _parameter_names(self):
        """The name of each parameter, as programs written for Horovod read it."""
        return self._horo_names

    def set_backward_passes_per_step(self, passes):
        """Gradients are reduced in every `passes`-th backward; until then they add up."""
        self._horo_reducer.restart(whole_passes(passes))

    def synchronize(self):
        """Waits until every gradient is reduced. A gradient that is missing here counts as zeros."""
        if self._horo_frozen:
            self._horo_thaw()
        self._horo_reducer.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Inside, step() does not synchronize: call synchronize() before it, for example to clip
        gradients."""
        with self._horo_reducer.skip():
            yield

    def step(self, closure=None):
        """Synchronizes, unless inside skip_synchronize(), then steps."""
        own_step = super().step
        if closure is None:
            return self._horo_reducer.step(self.synchronize, own_step)
        with_gradients = torch.enable_grad()(closure)
        return self._horo_reducer.step_with(self.synchronize, with_gradients, own_step)

    # The base's own step runs the hooks that a user registers.
    step.hooked = True  # type: ignore[attr-defined]

    def zero_grad(self, *args, **kwargs):
        """Like the optimizer's own. AssertionError while reductions are in flight."""
        if self._horo_reducer.in_flight():
            raise AssertionError(
                "zero_grad() while gradients are being reduced; call step() or synchronize() first"
            )
        self._horo_reducer.clear()
        return super().zero_grad(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        """Like the optimizer's own, once the reductions in flight have ended."""
        self._horo_reducer.wait()
        self._horo_reducer.restart()
        self._horo_reducer.clear()
        return super().load_state_dict(*args, **kwargs)


def _reduces_nothing(names):
    """A single rank of an elastic job may get peers later."""
    return not names.member or (names.size() == 1 and not is_elastic())


def _attach(parameter, hook):
    """Runs `hook` when torch has accumulated the parameter's gradient. Returns the objects that
    must stay alive for that; the first one removes the hook."""
    register = getattr(parameter, "register_post_accumulate_grad_hook", None)
    if register is not None:
        return (register(hook),)
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    return accumulator.register_hook(hook), accumulator


def _detach(hooks, reducer):
    for hook in hooks:
        hook[0].remove()
    for gradient in reducer.gradients:
        if gradient.handle and not gradient.sparse:
            _handles.abandon(gradient.handle, gradient.memory)
    reducer.end()


# -- Groups --------------------------------------------------------------------------------------


def _make_groups(gradients, groups, process_set):
    """Groups the gradients by a number of groups, or by lists of parameters. Fails: ValueError."""
    if groups is None or groups == 0:
        return
    grouped = _chunks if isinstance(groups, int) else _listed
    for members in grouped(gradients, groups, process_set):
        Group(members, _handles.submit_all)


def _chunks(gradients, count, process_set):
    """`count` groups of neighbours, in the order of the set's first rank. A rank that comes later to
    an elastic job cannot ask: there, each rank takes its own order."""
    by_name = {gradient.name: gradient for gradient in gradients}
    order = list(by_name)
    if not is_elastic():
        order = broadcast_object(order, process_set.ranks[0], process_set=process_set)
    if set(order) != set(by_name):
        raise ValueError("the ranks' optimizers have different parameters; groups need equal ones")
    count, start = min(count, len(order)), 0
    for index in range(count):
        length = len(order) // count + (index < len(order) % count)
        yield [by_name[name] for name in order[start : start + length]]
        start += length


def _listed(gradients, groups, _process_set):
    by_id = {id(gradient.parameter): gradient for gradient in gradients}
    seen = set()
    for members in groups:
        chunk = []
        for parameter in members:
            if not isinstance(parameter, torch.Tensor):
                raise ValueError(f"groups holds a {type(parameter).__name__}, not a parameter")
            if id(parameter) in seen:
                raise ValueError("a parameter is in groups twice")
            seen.add(id(parameter))
            if id(parameter) in by_id:
                chunk.append(by_id[id(parameter)])
        if chunk:
            yield chunk


# -- The user's function -------------------------------------------------------------------------


def _check_optimizer(optimizer):
    if not hasattr(optimizer, "param_groups"):
        raise ValueError(
            f"optimizer is of type {type(optimizer).__name__}, not one of torch.optim; "
            "give DistributedOptimizer(optimizer, model.named_parameters())"
        )
    if isinstance(optimizer, Copied):
        raise ValueError("optimizer is a DistributedOptimizer already; give the one it was made of")


def _check_options(op, gradient_predivide_factor, groups, compression, share):
    """The operation. Fails: ValueError (one of them is wrong)."""
    op = resolve_op(None, op)
    if gradient_predivide_factor != 1.0 and op != AVERAGE:
        raise ValueError("gradient_predivide_factor needs op=Average")
    if not (groups is None or isinstance(groups, (int, list))) or isinstance(groups, bool):
        raise ValueError("groups must be a number of groups or a list of lists of parameters")
    if isinstance(groups, int) and groups < 0:
        raise ValueError(f"groups is {groups}; it must be 0 or more")
    if not hasattr(compression, "compress"):
        raise ValueError(f"compression is {compression!r}, not a class such as Compression.fp16")
    if share not in (True, False, "auto"):
        raise ValueError("gradients_in_shared_memory must be True, False or 'auto'")
    return op


def _of_class(optimizer, kind):
    """An object of class `kind` with the optimizer's groups and state."""
    made = object.__new__(kind)
    # A scheduler may have stored a wrapped step in the original, which would hide the new step.
    made.__dict__.update({k: v for k, v in optimizer.__dict__.items() if k != "step"})
    return made


def DistributedOptimizer(
    optimizer: Optimizer,
    named_parameters: Iterable[tuple[str, Parameter]] | None = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = AVERAGE,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | list[list[Tensor]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
    gradients_in_shared_memory: bool | Literal["auto"] = "auto",
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> Any:
    """Returns an optimizer of `optimizer`'s own class whose gradients are reduced over all ranks of
    the process set. On a rank that is not in the set nothing is reduced.

    Each gradient's reduction starts in backward and ends in step(). Gradients in the arena, the
    memory that the ranks of the host share, are reduced in place. gradients_in_shared_memory="auto"
    moves gradients there that stay from step to step and are alone in their memory, while there is
    room; True moves all, and copies what torch allocates outside; False moves none.

    wire_dtype="bfloat16" or "float16" rounds gradients of float32 on their way between hosts, and
    error_feedback=True adds what the rounding has left to the next step's gradient; None leaves
    both to the knobs wire.dtype and wire.error.feedback.

    With op=Adasum each rank steps by its own gradients, and the changes of the steps are combined;
    groups and sparse_as_dense have no effect then.
    """
    _check_optimizer(optimizer)
    process_set = global_process_set if process_set is None else process_set
    names = existing(process_set)
    share = gradients_in_shared_memory
    op = _check_options(op, gradient_predivide_factor, groups, compression, share)
    if num_groups:
        warnings.warn("num_groups is deprecated; use groups", DeprecationWarning, stacklevel=2)
        groups = groups if groups is not None else num_groups
    if op == ADASUM and (groups or sparse_as_dense) and _job.rank() == 0:
        warnings.warn("groups and sparse_as_dense have no effect with op=Adasum", stacklevel=2)
    passes = whole_passes(backward_passes_per_step)
    factor, share = gradient_predivide_factor, share if share == "auto" else bool(share)
    wire = resolve_wire(wire_dtype, error_feedback)
    plan = Plan(names, op, 1.0 / factor, factor, compression, sparse_as_dense, share, wire)
    class_over: Any = adasum_class_over if op == ADASUM else _class_over
    made = _of_class(optimizer, class_over(type(optimizer)))
    named = names_of(made.param_groups, named_parameters, names)
    made._horo_setup(plan, named, passes, groups, process_set)
    return made


@functools.lru_cache(maxsize=None)
def _class_over(base):
    return class_of(_Distributed, _class_over, base)
