# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: reduces each gradient over all ranks while backward goes on."""

import contextlib
import functools
import itertools
import warnings
import weakref

import torch

from horo import _core, errors
from horo._sets import existing, global_process_set
from horo.torch._adasum import class_over as adasum_class_over
from horo.torch._compression import Compression
from horo.torch._gradients import Gradient, Group, Plan
from horo.torch._memory import alloc_like
from horo.torch._state import broadcast_object

_unnamed_optimizers = itertools.count()


class _Options:
    """Arguments of DistributedOptimizer after the optimizer itself."""

    def __init__(self, named_parameters, passes, groups, shared, process_set, plan):
        self.named_parameters = named_parameters
        self.passes = passes
        self.groups = groups
        self.shared = shared
        self.process_set = process_set
        self.plan = plan


class _Distributed:
    """Goes in front of an optimizer's class; shares the original's groups and state."""

    def _horo_setup(self, options):
        self._horo_passes = options.passes
        self._horo_in_step = True
        self._horo_synchronized = False
        self._horo_hooks = []
        self._horo_gradients = []
        self._horo_groups = []
        names = _names_of(self.param_groups, options.named_parameters)
        plan = options.plan
        if not plan.names.member or plan.names.size() == 1:
            return
        for parameter, name in names:
            if parameter.requires_grad:
                self._horo_gradients.append(Gradient(parameter, name, plan))
        self._horo_groups = _make_groups(self._horo_gradients, options.groups, options.process_set)
        if options.shared:
            _share(self._horo_gradients, options.shared)
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
        self.set_backward_passes_per_step(self._horo_passes)
        for group in self._horo_groups:
            group.ready = 0
        self._horo_synchronized = False
        return super().load_state_dict(*args, **kwargs)


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
    names = {}
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


def _share(gradients, mode):
    """Gives gradients a place in the arena; "auto" leaves out what has no room."""
    for gradient in gradients:
        if gradient.parameter.device.type != "cpu" or not gradient.fast:
            continue
        try:
            gradient.shared = alloc_like(gradient.parameter.detach())
        except errors.ResourceError:
            if mode != "auto":
                raise
            return


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
    optimizer,
    named_parameters=None,
    compression=Compression.none,
    backward_passes_per_step=1,
    op=_core.AVERAGE,
    gradient_predivide_factor=1.0,
    num_groups=0,
    groups=None,
    sparse_as_dense=False,
    process_set=global_process_set,
    gradients_in_shared_memory=False,
):
    """`optimizer` with its gradients reduced over all ranks of the process set, as an object of its
    own class. On a rank that is not in the set nothing is reduced.

    Reduction starts in backward, gradient by gradient, and ends in step(). With
    gradients_in_shared_memory each gradient is moved once into the arena that the ranks of the
    host share, where it is reduced in place; "auto" does so for as many as there is room.

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
    plan = Plan(names, op, 1.0 / factor, factor, compression, sparse_as_dense)
    base = type(optimizer)
    kind = adasum_class_over(base) if op == _core.ADASUM else _class_over(base)
    made = object.__new__(kind)
    # A scheduler may have put a wrapped step into the original: it must not hide ours.
    made.__dict__.update({k: v for k, v in optimizer.__dict__.items() if k != "step"})
    if op == _core.ADASUM:
        made._horo_setup(_names_of(made.param_groups, named_parameters), plan)
        return made
    made._horo_setup(
        _Options(
            named_parameters,
            backward_passes_per_step,
            groups,
            gradients_in_shared_memory,
            process_set,
            plan,
        )
    )
    return made


@functools.lru_cache(maxsize=None)
def _class_over(base):
    return type(base.__name__, (_Distributed, base), {"__module__": base.__module__})
