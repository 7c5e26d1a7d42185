# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: reduces each gradient over all ranks while backward goes on."""

from __future__ import annotations

import contextlib
import functools
import itertools
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import torch

from horo import _core, errors
from horo._sets import existing, global_process_set
from horo.torch._adasum import class_over as adasum_class_over
from horo.torch._agreement import Agreement, describe
from horo.torch._compression import Compression
from horo.torch._gradients import Gradient, Group, Plan
from horo.torch._objects import broadcast_object

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer

    from horo._sets import ProcessSet
    from horo.torch._compression import Compressor

_unnamed_optimizers = itertools.count()

# The class comes in front of an optimizer's, which mypy shall know.
_Base: Any = torch.optim.Optimizer if TYPE_CHECKING else object


class _Options:
    """Arguments of DistributedOptimizer after the optimizer itself."""

    def __init__(self, named_parameters, passes, groups, process_set, plan):
        self.named_parameters = named_parameters
        self.passes = passes
        self.groups = groups
        self.process_set = process_set
        self.plan = plan


class _Distributed(_Base):
    """Goes in front of an optimizer's class; shares the original's groups and state."""

    def _horo_setup(self, options):
        self._horo_passes = options.passes
        self._horo_in_step = True
        self._horo_synchronized = False
        self._horo_hooks = []
        self._horo_gradients = []
        self._horo_groups = []
        self._horo_agreement = None
        names = _names_of(self.param_groups, options.named_parameters)
        plan = options.plan
        if not plan.names.member or plan.names.size() == 1:
            return
        for parameter, name in names:
            if parameter.requires_grad:
                self._horo_gradients.append(Gradient(parameter, name, plan))
        self._horo_agreement = _compare(plan.names, options.process_set, names)
        self._horo_groups = _make_groups(self._horo_gradients, options.groups, options.process_set)
        if plan.share is True:
            for gradient in self._horo_gradients:
                gradient.reserve()
        self.set_backward_passes_per_step(options.passes)
        for gradient in self._horo_gradients:
            self._horo_hooks.append(_attach(gradient.parameter, _hook(gradient)))
        # An optimizer that nobody has any more must not go on reducing its model's gradients.
        weakref.finalize(self, _detach, self._horo_hooks).atexit = False

    def set_backward_passes_per_step(self, passes):
        """Gradients are reduced on every `passes`-th backward; until then they add up."""
        if passes <= 0:
            raise ValueError(f"backward_passes_per_step is {passes}; it must be 1 or more")
        self._horo_passes = passes
        for gradient in self._horo_gradients:
            gradient.delay = passes

    def _horo_pending(self):
        return any(gradient.delay <= 0 or gradient.handle for gradient in self._horo_gradients)

    def synchronize(self):
        """Waits until every gradient is reduced; gradients that are missing here count as zeros."""
        gradients = self._horo_gradients
        if self._horo_agreement is not None:
            self._horo_agree(self._horo_agreement)
        for gradient in gradients:
            if gradient.delay > 0:
                gradient.delay = 0
                if gradient.group is None:
                    gradient.start()
                else:
                    gradient.group.add()
        first_error = _wait_for(gradients)
        passes = self._horo_passes
        for gradient in gradients:
            gradient.delay = passes
        self._horo_synchronized = True
        if first_error is not None:
            raise first_error

    def _horo_agree(self, agreement):
        try:
            agreement.require()
        except errors.MismatchError:
            _leave(self._horo_gradients, agreement.missing)
            self._horo_restart()
            raise
        self._horo_agreement = None

    def _horo_restart(self):
        self.set_backward_passes_per_step(self._horo_passes)
        for group in self._horo_groups:
            group.ready = 0
        self._horo_synchronized = False

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Inside, step() does not synchronize: call synchronize() before, to clip gradients say."""
        self._horo_in_step = False
        try:
            yield
        finally:
            self._horo_in_step = True

    def step(self, closure=None):
        """Synchronizes, unless inside skip_synchronize(), then steps."""
        if not self._horo_in_step:
            self._horo_synchronized = False
            return super().step(closure)
        if closure is not None:
            if self._horo_pending():
                self.synchronize()
            self._horo_synchronized = False
            return super().step(self._horo_closure(closure))
        if self._horo_synchronized:
            warnings.warn(
                "step() synchronizes again after synchronize(); use skip_synchronize() around it",
                stacklevel=2,
            )
        self.synchronize()
        self._horo_synchronized = False
        return super().step()

    def _horo_closure(self, closure):
        """The gradients that a closure computes are reduced before the optimizer reads them."""

        def reduced():
            with torch.enable_grad():
                loss = closure()
            self.synchronize()
            self._horo_synchronized = False
            return loss

        return reduced

    def zero_grad(self, *args, **kwargs):
        """As the optimizer's own; AssertionError while reductions are under way."""
        if any(gradient.handle for gradient in self._horo_gradients):
            raise AssertionError(
                "zero_grad() while gradients are being reduced; call step() or synchronize() first"
            )
        self._horo_synchronized = False
        return super().zero_grad(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        """As the optimizer's own; what is under way completes first."""
        _wait_for(self._horo_gradients)
        self._horo_restart()
        return super().load_state_dict(*args, **kwargs)


def _compare(names, process_set, named):
    """Compares what the ranks' optimizers reduce, from (parameter, name) pairs."""
    trained = [(name, parameter) for parameter, name in named if parameter.requires_grad]
    what = f"optimizer.{next(names.optimizers)}.parameters"
    return Agreement(names, process_set.ranks, what, describe(trained))


def _hook(gradient):
    start = gradient.start if gradient.group is None else gradient.group.add

    def hook(*_ignored):
        delay = gradient.delay = gradient.delay - 1
        if delay > 0:
            return
        if delay < 0:
            raise AssertionError(
                f"the gradient of {gradient.name} was computed more often before step() than "
                "backward_passes_per_step says; raise it, or call step() or synchronize() between"
            )
        try:
            start()
        except Exception:
            if not gradient.handle:
                gradient.delay = 1  # not under way: synchronize() submits it again
            raise

    return hook


def _wait_for(gradients):
    """Completes what is under way and puts the results back. Returns the first error, or None."""
    dense = [gradient for gradient in gradients if gradient.handle and not gradient.sparse]
    status = _core.wait_all([gradient.handle for gradient in dense])
    first_error = _core.failure(status) if status else None
    for gradient in dense:
        gradient.finish(status)
    for gradient in gradients:
        if gradient.handle:  # sparse
            try:
                gradient.finish_sparse()
            except errors.HoroError as error:
                first_error = first_error or error
    return first_error


def _leave(gradients, missing):
    """Completes what is under way but for what some rank does not have: that stays with the
    runtime, and its memory too."""
    for gradient in gradients:
        together = gradient.group.members if gradient.group else [gradient]
        if gradient.handle and any(member.name in missing for member in together):
            if not gradient.sparse:
                _core.PENDING[gradient.handle] = (gradient.part, None, None)
            gradient.sparse = () if gradient.sparse else None
            gradient.part, gradient.handle = None, 0
    _wait_for(gradients)


def _attach(parameter, hook):
    """Runs `hook` when the parameter's gradient has been accumulated; gives what must live on."""
    register = getattr(parameter, "register_post_accumulate_grad_hook", None)
    if register is not None:
        return (register(hook),)
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    return accumulator.register_hook(hook), accumulator


def _detach(hooks):
    for hook in hooks:
        hook[0].remove()


def _names_of(param_groups, named_parameters):
    """(parameter, name) in the order of the optimizer. Fails: ValueError."""
    parameters = [parameter for group in param_groups for parameter in group["params"]]
    if named_parameters is None:
        ordinal = next(_unnamed_optimizers)
        prefix = "noname" if ordinal == 0 else f"optimizer{ordinal}.noname"
        return [
            (parameter, f"{prefix}.{i}.{j}")
            for i, group in enumerate(param_groups)
            for j, parameter in enumerate(group["params"])
        ]
    pairs = list(named_parameters)
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise ValueError("named_parameters must be (name, parameter) tuples, as of a model")
    names: dict[str, Any] = {}
    for name, parameter in pairs:
        if name in names and names[name] is not parameter:
            raise ValueError(f"named_parameters has two parameters named {name!r}")
        names[name] = parameter
    name_of = {id(parameter): name for name, parameter in pairs}
    missing = sum(id(parameter) not in name_of for parameter in parameters)
    if missing:
        raise ValueError(
            f"named_parameters lacks {missing} of the optimizer's {len(parameters)} parameters"
        )
    return [(parameter, name_of[id(parameter)]) for parameter in parameters]


def _make_groups(gradients, groups, process_set):
    """Groups from a count of chunks, or from lists of parameters."""
    if groups is None or groups == 0:
        return []
    if isinstance(groups, int):
        root = process_set.ranks[0]
        names = [gradient.name for gradient in gradients]
        order = broadcast_object(names, root, process_set=process_set)
        by_name = {gradient.name: gradient for gradient in gradients}
        if set(order) != set(by_name):
            raise ValueError("the ranks' optimizers have different parameters; groups need equal")
        count, chunks, start = min(groups, len(order)), [], 0
        for index in range(count):
            length = len(order) // count + (index < len(order) % count)
            chunks.append([by_name[name] for name in order[start : start + length]])
            start += length
        return [Group(chunk) for chunk in chunks]
    by_id = {id(gradient.parameter): gradient for gradient in gradients}
    made, seen = [], set()
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
            made.append(Group(chunk))
    return made


def _check(op, gradient_predivide_factor, groups):
    op = _core.resolve_op(None, op)
    if gradient_predivide_factor != 1.0 and op != _core.AVERAGE:
        raise ValueError("gradient_predivide_factor needs op=Average")
    if not (groups is None or isinstance(groups, (int, list))) or isinstance(groups, bool):
        raise ValueError("groups must be a number of groups or a list of lists of parameters")
    if isinstance(groups, int) and groups < 0:
        raise ValueError(f"groups is {groups}; it must be 0 or more")
    return op


def DistributedOptimizer(
    optimizer: Optimizer,
    named_parameters: Iterable[tuple[str, Parameter]] | None = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = _core.AVERAGE,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | list[list[Tensor]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
    gradients_in_shared_memory: bool | Literal["auto"] = "auto",
) -> Any:
    """`optimizer` with its gradients reduced over all ranks of the process set, as an object of its
    own class. On a rank that is not in the set nothing is reduced.

    Reduction starts in backward, gradient by gradient, and ends in step(). In the arena that the
    ranks of the host share gradients are reduced in place: gradients_in_shared_memory="auto" moves
    there, once, those that stay from step to step and are alone in their memory, while there is
    room; True all, copying what torch makes anew; False none.

    With op=Adasum each rank steps by its own gradients, and what the steps changed is combined;
    groups and sparse_as_dense mean nothing then.
    """
    process_set = global_process_set if process_set is None else process_set
    names = existing(process_set)
    op = _check(op, gradient_predivide_factor, groups)
    if num_groups:
        warnings.warn("num_groups is deprecated; use groups", DeprecationWarning, stacklevel=2)
        groups = groups if groups is not None else num_groups
    if backward_passes_per_step <= 0:
        raise ValueError(
            f"backward_passes_per_step is {backward_passes_per_step}; it must be 1 or more"
        )
    if gradients_in_shared_memory not in (True, False, "auto"):
        raise ValueError("gradients_in_shared_memory must be True, False or 'auto'")
    factor = gradient_predivide_factor
    share = gradients_in_shared_memory
    share = share if share == "auto" else bool(share)
    plan = Plan(names, op, 1.0 / factor, factor, compression, sparse_as_dense, share)
    base: Any = type(optimizer)
    kind = adasum_class_over(base) if op == _core.ADASUM else _class_over(base)
    made = object.__new__(kind)
    # A scheduler may have put a wrapped step into the original: it must not hide ours.
    made.__dict__.update({k: v for k, v in optimizer.__dict__.items() if k != "step"})
    if op == _core.ADASUM:
        named = _names_of(made.param_groups, named_parameters)
        alone = not names.member or names.size() == 1
        made._horo_setup(named, plan, None if alone else _compare(names, process_set, named))
        return made
    made._horo_setup(
        _Options(
            named_parameters,
            backward_passes_per_step,
            groups,
            process_set,
            plan,
        )
    )
    return made


@functools.lru_cache(maxsize=None)
def _class_over(base):
    return type(base.__name__, (_Distributed, base), {"__module__": base.__module__})
