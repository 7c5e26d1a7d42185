# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: reduces each gradient over all ranks while backward goes on."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import torch

from horo import _core, errors
from horo._sets import existing, global_process_set
from horo.torch._adasum import class_over as adasum_class_over
from horo.torch._agreement import Agreement, Layouts, describe, names_of
from horo.torch._compression import Compression
from horo.torch._copies import Copied, class_of
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


class _Options:
    """Arguments of DistributedOptimizer after the optimizer itself."""

    def __init__(self, named_parameters, passes, groups, process_set, plan):
        self.named_parameters = named_parameters
        self.passes = passes
        self.groups = groups
        self.process_set = process_set
        self.plan = plan


class _Distributed(Copied):
    """Goes in front of an optimizer's class; shares the original's groups and state."""

    def _horo_setup(self, options):
        self._horo_passes = options.passes
        self._horo_in_step = True
        self._horo_synchronized = False
        self._horo_stepping = False  # step() has begun; an exception may have ended it
        self._horo_left = 0  # what an exception left of the reduced gradients
        self._horo_hooks: list[Any] = []
        self._horo_gradients = []
        self._horo_frozen = []  # parameters that want no gradient, with their names
        self._horo_agreement = None
        self._horo_layouts: Any = None
        plan = self._horo_plan = options.plan
        names = names_of(self.param_groups, options.named_parameters, plan.names)
        if self._horo_reduces_nothing():
            return
        for parameter, name in names:
            if parameter.requires_grad:
                self._horo_gradients.append(Gradient(parameter, name, plan))
            else:
                self._horo_frozen.append((parameter, name))
        agreement = self._horo_agreement = _compare(plan.names, options.process_set, names)
        self._horo_layouts = Layouts(agreement, self._horo_gradients)
        _make_groups(self._horo_gradients, options.groups, options.process_set)
        self._horo_watch(self._horo_gradients)
        _core.sweep()
        # An optimizer that nobody has any more must not go on reducing its model's gradients.
        weakref.finalize(self, _detach, self._horo_hooks, self._horo_gradients).atexit = False

    def _horo_watch(self, gradients):
        for gradient in gradients:
            gradient.delay = self._horo_passes
            if self._horo_plan.share is True:
                gradient.reserve()
            self._horo_hooks.append(_attach(gradient.parameter, _hook(gradient)))

    def _horo_reduces_nothing(self):
        names = self._horo_plan.names
        return not names.member or names.size() == 1

    def add_param_group(self, *args, **kwargs):
        """As the optimizer's own, on all ranks; the group's gradients are reduced too."""
        super().add_param_group(*args, **kwargs)
        if not self._horo_reduces_nothing():
            self._horo_frozen += names_of(self.param_groups[-1:], None, self._horo_plan.names)
            self._horo_thaw()

    def _horo_thaw(self):
        """Reduces what wants a gradient by now, as on all ranks."""
        thawed = [pair for pair in self._horo_frozen if pair[0].requires_grad]
        if thawed:
            self._horo_frozen = [pair for pair in self._horo_frozen if not pair[0].requires_grad]
            added = [Gradient(parameter, name, self._horo_plan) for parameter, name in thawed]
            self._horo_gradients += added
            self._horo_watch(added)
            self._horo_layouts.open += added

    def set_backward_passes_per_step(self, passes):
        """Gradients are reduced on every `passes`-th backward; until then they add up."""
        passes = self._horo_passes = _whole_passes(passes)
        for gradient in self._horo_gradients:
            gradient.delay = passes

    def _horo_pending(self):
        return any(gradient.delay <= 0 or gradient.handle for gradient in self._horo_gradients)

    def _horo_computed(self):
        passes = self._horo_passes
        return any(gradient.delay < passes or gradient.handle for gradient in self._horo_gradients)

    def _horo_remains(self):
        """What is left of the last step's gradients: 2, or 1 if all are zero, or 0 if all are dropped."""
        grads = [gradient.parameter.grad for gradient in self._horo_gradients]
        present = [grad for grad in grads if grad is not None]
        return 2 if any(bool(grad.to_dense().any()) for grad in present) else int(bool(present))

    def synchronize(self):
        """Waits until every gradient is reduced; gradients that are missing here count as zeros."""
        gradients = self._horo_gradients
        if self._horo_frozen:
            self._horo_thaw()
        if self._horo_agreement is not None:
            self._horo_agree(self._horo_agreement)
            self._horo_agreement = None
        if self._horo_layouts is not None and self._horo_layouts.open:
            self._horo_agree(self._horo_layouts)
        for gradient in gradients:
            if gradient.delay > 0:
                _start(gradient)
        first_error = _wait_for(gradients)
        self._horo_reduced(first_error is None)
        if first_error is not None:
            raise first_error

    def _horo_reduced(self, well):
        """All gradients have been: none is begun for the next step. In one call that runs no Python,
        so that a signal's handler that raises comes before or after it."""
        gradients = self._horo_gradients
        owners = [self, *gradients]
        names = ["_horo_synchronized", *["delay"] * len(gradients)]
        values = [well, *[self._horo_passes] * len(gradients)]
        collections.deque(map(setattr, owners, names, values), 0)

    def _horo_agree(self, what):
        try:
            what.require()
        except errors.MismatchError:
            _leave(self._horo_gradients, what.alone)
            self._horo_restart()
            raise

    def _horo_restart(self):
        self.set_backward_passes_per_step(self._horo_passes)
        self._horo_synchronized = self._horo_stepping = False

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
        if closure is None:
            reduced = False
            try:
                self._horo_synchronize_once()
                reduced = True
                loss = super().step()
                self._horo_synchronized = self._horo_stepping = False
            except BaseException:
                if reduced:  # whatever the base's own has called, such as zero_grad()
                    self._horo_synchronized = self._horo_stepping = True
                    self._horo_left = self._horo_remains()
                raise
            return loss
        pending = self._horo_pending()
        if pending:
            self.synchronize()
        self._horo_synchronized = False
        return super().step(self._horo_closure(closure, pending))

    # The base's own step runs the hooks that a user registers.
    step.hooked = True  # type: ignore[attr-defined]

    def _horo_synchronize_once(self):
        """Once for a step() that an exception ends in the base's own and that is called again: the
        other ranks have stepped, and reduce nothing more. Unless gradients were dropped, or made
        zero, since: then it is another batch's."""
        if self._horo_synchronized:
            if self._horo_stepping and not self._horo_computed():
                if self._horo_remains() >= self._horo_left:
                    return
            if not self._horo_stepping:
                warnings.warn(
                    "step() synchronizes again after synchronize(); use skip_synchronize() around "
                    "it",
                    stacklevel=3,
                )
        self._horo_synchronized, self._horo_stepping, self._horo_left = False, True, 0
        self.synchronize()

    def _horo_closure(self, closure, done):
        """The gradients that a closure computes are reduced before the optimizer reads them; `done`:
        those from before it are, so that one that computes none reduces none."""

        def reduced():
            with torch.enable_grad():
                loss = closure()
            if not done or self._horo_computed():
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
        self._horo_synchronized = self._horo_stepping = False
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
    slot = gradient.record.slot

    def hook(*_ignored):
        delay = gradient.delay - 1
        if delay > 0:
            gradient.delay = delay
            return
        if delay < 0:
            raise AssertionError(
                f"the gradient of {gradient.name} was computed more often before step() than "
                "backward_passes_per_step says; raise it, or call step() or synchronize() between"
            )
        if gradient.handle:  # the runtime has its memory
            gradient.delay = 0
            raise errors.DuplicateNameError(
                f"the gradient of {gradient.name} is being reduced already; call step() or "
                "synchronize() before the next backward"
            )
        slot.value = 0
        try:
            gradient.delay = 0
            start()
        except BaseException:
            if not gradient.recover():
                gradient.delay = 1  # not under way: synchronize() submits it again
            raise

    return hook


def _start(gradient):
    """Submits what no hook has; on failure synchronize() may submit it again."""
    if gradient.handle:  # set_backward_passes_per_step() has begun its count anew
        gradient.delay = 0
        return
    gradient.record.slot.value = 0
    try:
        gradient.delay = 0
        if gradient.group is None:
            gradient.start()
        else:
            gradient.group.add()
    except BaseException:
        if not gradient.recover():
            gradient.delay = max(gradient.delay, 1)
        raise


def _wait_for(gradients):
    """Completes what is under way and puts the results back. Returns the first error, or None."""
    dense = [gradient for gradient in gradients if gradient.handle and not gradient.sparse]
    operations = (ctypes.c_uint64 * len(dense))(*[gradient.handle for gradient in dense])
    status = _core.wait_all(operations)
    first_error = _core.failure(status) if status else None
    for gradient in dense:
        gradient.finish(status)
    _core.take_all(operations)
    for gradient in gradients:
        if gradient.handle:  # sparse
            try:
                gradient.finish_sparse()
            except errors.HoroError as error:
                first_error = first_error or error
    return first_error


def _leave(gradients, alone):
    """Completes what is under way but for the names that not all ranks submit: these stay with the
    runtime, and their memory too."""
    for gradient in gradients:
        together = gradient.group.members if gradient.group else [gradient]
        if gradient.handle and any(member.name in alone for member in together):
            if not gradient.sparse:
                _core.abandon(gradient.handle, gradient.memory)
            gradient.sparse = None if gradient.sparse is None else 0
            gradient.part, gradient.memory, gradient.handle, gradient.frozen = None, None, 0, False
    _wait_for(gradients)


def _attach(parameter, hook):
    """Runs `hook` when the parameter's gradient has been accumulated; gives what must live on."""
    register = getattr(parameter, "register_post_accumulate_grad_hook", None)
    if register is not None:
        return (register(hook),)
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    return accumulator.register_hook(hook), accumulator


def _detach(hooks, gradients):
    for hook in hooks:
        hook[0].remove()
    for gradient in gradients:
        if gradient.handle and not gradient.sparse:
            _core.abandon(gradient.handle, gradient.memory)


def _make_groups(gradients, groups, process_set):
    """From a count of chunks, or from lists of parameters."""
    if groups is None or groups == 0:
        return
    if isinstance(groups, int):
        root = process_set.ranks[0]
        names = [gradient.name for gradient in gradients]
        order = broadcast_object(names, root, process_set=process_set)
        by_name = {gradient.name: gradient for gradient in gradients}
        if set(order) != set(by_name):
            raise ValueError("the ranks' optimizers have different parameters; groups need equal")
        count, start = min(groups, len(order)), 0
        for index in range(count):
            length = len(order) // count + (index < len(order) % count)
            Group([by_name[name] for name in order[start : start + length]])
            start += length
        return
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
            Group(chunk)


def _whole_passes(given):
    passes = _core.whole_number(given, "backward_passes_per_step")
    if passes <= 0:
        raise ValueError(f"backward_passes_per_step is {passes}; it must be 1 or more")
    return passes


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
    if not hasattr(optimizer, "param_groups"):
        raise ValueError(
            f"optimizer is of type {type(optimizer).__name__}, not one of torch.optim; "
            "give DistributedOptimizer(optimizer, model.named_parameters())"
        )
    if isinstance(optimizer, Copied):
        raise ValueError("optimizer is a DistributedOptimizer already; give it the one it is made of")
    process_set = global_process_set if process_set is None else process_set
    names = existing(process_set)
    op = _check(op, gradient_predivide_factor, groups)
    if num_groups:
        warnings.warn("num_groups is deprecated; use groups", DeprecationWarning, stacklevel=2)
        groups = groups if groups is not None else num_groups
    backward_passes_per_step = _whole_passes(backward_passes_per_step)
    if not hasattr(compression, "compress"):
        raise ValueError(f"compression is {compression!r}, not a class such as Compression.fp16")
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
        named = names_of(made.param_groups, named_parameters, names)
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
    return class_of(_Distributed, _class_over, base)
