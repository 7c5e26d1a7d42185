# SPDX-License-Identifier: Apache-2.0
"""What Horo's callbacks do, without a class of Keras: horo.keras.callbacks and
horo.tensorflow.keras.callbacks add the Callback of their Keras."""

from __future__ import annotations

from typing import Any

import numpy

from horo import _job
from horo._elastic.arrays import broadcast_arrays
from horo._elastic.keras_state import array_of, settle, variables_of
from horo.keras import _values


def broadcast_model(model: Any, optimizer: Any, root_rank: int) -> None:
    """Makes a model's variables and those of its optimizer equal on all ranks."""
    if not getattr(model, "built", True):
        raise ValueError(
            "the model is not built: call model.build(shape), or give its first layer an input shape"
        )
    settle(model)
    variables = variables_of(model, optimizer)
    arrays = broadcast_arrays([array_of(one) for one in variables], root_rank, "keras.variables")
    for variable, array in zip(variables, arrays):
        variable.assign(array)


class Broadcast:
    """Starts all ranks with the model and the optimizer of rank `root_rank`."""

    model: Any

    def __init__(self, root_rank: int, device: str = "", local_variables: Any = None) -> None:
        del device, local_variables
        super().__init__()
        self.root_rank = root_rank
        self.broadcast_done = False

    def on_train_begin(self, logs: Any = None) -> None:
        del logs
        if getattr(self.model, "built", True):
            self._broadcast()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """A model without an input shape is built by its first batch."""
        del batch, logs
        if not self.broadcast_done:
            self._broadcast()

    def _broadcast(self):
        if not self.broadcast_done:
            broadcast_model(self.model, self.model.optimizer, self.root_rank)
            self.broadcast_done = True


class MetricAverage:
    """Averages the metrics of all ranks at the end of each epoch. Callbacks after it see the
    averages."""

    def __init__(self, device: str = "") -> None:
        del device
        super().__init__()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        del epoch
        if not logs or _job.size() == 1:
            return
        names = sorted(name for name, value in logs.items() if numpy.ndim(value) == 0)
        values = numpy.array([float(logs[name]) for name in names], numpy.float64)
        averages = _values.allreduce(values, "keras.metrics." + ",".join(names))
        logs.update(zip(names, averages.tolist()))


class LearningRateSchedule:
    """Sets the learning rate to initial_lr * multiplier in the epochs from `start_epoch` to before
    `end_epoch`. `multiplier` is a number, or a function of the epoch. With `staircase` it changes once
    an epoch, else with every batch, whose epoch is a fraction. `momentum_correction` multiplies the
    momentum by new / old rate for the batch of a change, where the momentum is a variable of the
    optimizer; in most optimizers it is a constant of the compiled step."""

    model: Any
    params: Any

    def __init__(
        self,
        initial_lr: float,
        multiplier: Any,
        start_epoch: int = 0,
        end_epoch: int | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:
        super().__init__()
        if initial_lr is None:
            raise ValueError("initial_lr is None; give the learning rate that multipliers refer to")
        self.initial_lr = initial_lr
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.multiplier = multiplier if callable(multiplier) else lambda epoch: multiplier
        self.current_epoch = 0
        self._momentum: Any = None  # that of the optimizer, while another is set

    def on_train_begin(self, logs: Any = None) -> None:
        del logs
        if self.staircase or self.steps_per_epoch:
            return
        self.steps_per_epoch = (self.params or {}).get("steps")
        if not self.steps_per_epoch:
            raise ValueError(
                f"{type(self).__name__} needs steps_per_epoch=: the data does not say its length"
            )

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        del logs
        self.current_epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        del logs
        epoch = self.current_epoch
        over = self.end_epoch is not None and epoch >= self.end_epoch
        if epoch < self.start_epoch or over:
            return
        if not self.staircase:
            self._adjust(epoch + batch / self.steps_per_epoch)  # type: ignore[operator]
        elif batch == 0:
            self._adjust(epoch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        if self._momentum is not None:
            self.model.optimizer.momentum.assign(self._momentum)
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        del epoch
        if logs is not None:
            settle(self.model)
            logs["lr"] = self._rate()

    def _rate(self):
        return float(array_of(self.model.optimizer.learning_rate))

    def _adjust(self, epoch):
        settle(self.model)
        optimizer, old = self.model.optimizer, self._rate()
        new = self.initial_lr * self.multiplier(epoch)
        optimizer.learning_rate = new
        momentum = getattr(optimizer, "momentum", None)
        if self.momentum_correction and momentum is not None and hasattr(momentum, "assign") and old:
            self._momentum = float(array_of(momentum))
            momentum.assign(self._momentum * new / old)


class LearningRateWarmup(LearningRateSchedule):
    """Raises the learning rate from initial_lr / size to initial_lr during the first epochs, batch by
    batch. `initial_lr` is the rate for the batches of all ranks together."""

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: int = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
    ) -> None:
        def multiplier(epoch):
            # The last batch of the warm-up reaches the full rate.
            reached = epoch + 1.0 / (self.steps_per_epoch or 1)
            return (reached * (_job.size() - 1) / warmup_epochs + 1) / _job.size()

        super().__init__(
            initial_lr,
            multiplier,
            0,
            warmup_epochs,
            False,
            momentum_correction,
            steps_per_epoch,
        )
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        if self.verbose and epoch == self.end_epoch - 1 and _job.rank() == 0:  # type: ignore
            print(f"\nepoch {epoch + 1}: the warm-up ends with a learning rate of {self._rate():g}")


# -- Elastic trainings ----------------------------------------------------------------------------


class CommitState:
    """Commits the state after every `batches_per_commit` batches and after each epoch. It comes after
    the callbacks that update the state."""

    def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
        super().__init__()
        if batches_per_commit < 1:
            raise ValueError(f"batches_per_commit is {batches_per_commit}; it must be 1 or more")
        self.state = state
        self.batches_per_commit = batches_per_commit
        self._left = batches_per_commit

    def on_train_begin(self, logs: Any = None) -> None:
        del logs
        self._left = self.batches_per_commit

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self._left -= 1
        if self._left == 0:
            self._left = self.batches_per_commit
            self.state.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        del epoch, logs
        self.state.commit()


class UpdateBatchState:
    """Keeps state.batch at the number of batches that the epoch has done, 0 at its end."""

    params: Any

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self._steps: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        del logs
        self._steps = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """An epoch that goes on after a change of the ranks has fewer steps left."""
        del epoch, logs
        if (self.params or {}).get("steps"):
            self._steps = self._steps or self.params["steps"]
            self.params["steps"] = self._steps - self.state.batch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self.state.batch += 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        del epoch, logs
        self.state.batch = 0


class UpdateEpochState:
    """Keeps state.epoch at the number of epochs that the training has done."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        del epoch, logs
        self.state.epoch += 1


# -- Checkpoints ----------------------------------------------------------------------------------


class BestCheckpoint:
    """Saves the model with the best value of `monitor`, on rank 0 only. `filepath` may be set later."""

    def __init__(
        self,
        monitor: str = "val_loss",
        verbose: int = 0,
        mode: str = "auto",
        save_freq: Any = "epoch",
        filepath: str = "best.keras",
    ) -> None:
        super().__init__(  # type: ignore[call-arg]
            filepath,
            monitor=monitor,
            verbose=verbose,
            save_best_only=True,
            mode=mode,
            save_freq=save_freq,
        )

    def _save_model(self, *args: Any, **kwargs: Any) -> None:
        if _job.rank() == 0:
            super()._save_model(*args, **kwargs)  # type: ignore[misc]
