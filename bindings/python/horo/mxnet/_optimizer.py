# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer and DistributedTrainer: average the gradients over all ranks, then step."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from horo._sets import global_process_set, of
from horo.mxnet._compression import Compression
from horo.mxnet._gradients import average, check_options
from horo.mxnet._mxnet import mxnet

if TYPE_CHECKING:
    from horo._sets import ProcessSet

_OWN = ("_optimizer", "_predivide", "_groups", "_process_set")


class DistributedOptimizer(mxnet.optimizer.Optimizer):
    """An optimizer whose gradients are averaged over all ranks of the process set before each
    update. Its attributes are those of `optimizer`. With Gluon, use DistributedTrainer."""

    def __init__(
        self,
        optimizer: Any,
        gradient_predivide_factor: float = 1.0,
        num_groups: int = 0,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        check_options(gradient_predivide_factor, num_groups)
        if not isinstance(optimizer, mxnet.optimizer.Optimizer):
            raise ValueError(f"optimizer is a {type(optimizer).__name__}, not one of mxnet.optimizer")
        self._optimizer, self._process_set = optimizer, process_set
        self._predivide, self._groups = gradient_predivide_factor, num_groups

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or name.startswith("__"):  # absent while the object is being unpickled
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self._optimizer, name, value)

    def _average(self, index, grad):
        indices, grads = (index, grad) if isinstance(index, (list, tuple)) else ([index], [grad])
        named = [(f"DistributedOptimizer.{one}", array) for one, array in zip(indices, grads)]
        average(named, of(self._process_set), self._predivide, self._groups)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Averages the gradients, then lets the optimizer update the weights."""
        self._average(index, grad)
        self._optimizer.update(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Like update(), for weights that have a copy of more precision."""
        self._average(index, grad)
        self._optimizer.update_multi_precision(index, weight, grad, state)

    def create_state(self, index: Any, weight: Any) -> Any:
        """The optimizer's state of a weight."""
        return self._optimizer.create_state(index, weight)

    def create_state_multi_precision(self, index: Any, weight: Any) -> Any:
        """The optimizer's state of a weight that has a copy of more precision."""
        return self._optimizer.create_state_multi_precision(index, weight)

    def set_learning_rate(self, lr: float) -> None:
        """Sets the optimizer's learning rate."""
        self._optimizer.set_learning_rate(lr)

    def set_lr_mult(self, args_lr_mult: dict[Any, float]) -> None:
        """Sets factors of the learning rate by parameter."""
        self._optimizer.set_lr_mult(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: dict[Any, float]) -> None:
        """Sets factors of the weight decay by parameter."""
        self._optimizer.set_wd_mult(args_wd_mult)


class DistributedTrainer(mxnet.gluon.Trainer):
    """A Trainer whose gradients are averaged over all ranks of the process set in step() and
    allreduce_grads(). `batch_size` of step() is that of one rank. `prefix` tells the gradients of
    several trainers apart; ranks give the same."""

    def __init__(
        self,
        params: Any,
        optimizer: Any,
        optimizer_params: dict[str, Any] | None = None,
        compression: Any = Compression.none,
        gradient_predivide_factor: float = 1.0,
        prefix: str | None = None,
        num_groups: int = 0,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        check_options(gradient_predivide_factor, num_groups)
        if isinstance(optimizer, DistributedOptimizer):
            warnings.warn("DistributedTrainer averages by itself: give the plain optimizer")
            optimizer = optimizer._optimizer
        super().__init__(params, optimizer, optimizer_params, kvstore=None)
        self._horo_prefix = "DistributedTrainer" if prefix is None else prefix
        self._horo_options = (gradient_predivide_factor, num_groups)
        self._horo_compression, self._horo_set = compression, process_set

    def _allreduce_grads(self):
        named = []
        for index, param in enumerate(self._params):
            if param.grad_req != "null":
                grads = param.list_grad()
                if len(grads) > 1:
                    raise ValueError(
                        f"parameter {param.name} is on {len(grads)} devices; a rank has one"
                    )
                named.append((f"{self._horo_prefix}.{index}.{param.name}", grads[0]))
        compressed = [self._horo_compression.compress(grad) for _, grad in named]
        moving = [(name, array) for (name, _), (array, _) in zip(named, compressed)]
        average(moving, of(self._horo_set), *self._horo_options)
        for (_, grad), (array, context) in zip(named, compressed):
            if array is not grad:
                self._horo_compression.decompress(array, context).copyto(grad)
