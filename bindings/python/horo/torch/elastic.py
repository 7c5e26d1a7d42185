# SPDX-License-Identifier: Apache-2.0
"""Elastic trainings with PyTorch.

    state = horo.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0)

    @horo.elastic.run
    def train(state):
        while state.epoch < epochs:
            for batch, indices in enumerate(loader):
                ...
                optimizer.step()
                state.sampler.record_batch(batch, batch_size)
                state.check_host_updates()
            state.epoch += 1
            state.sampler.set_epoch(state.epoch)

    train(state)

A step in which a rank is lost is repeated by the others; nothing is rolled back.
"""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING

import torch

from horo import _job
from horo._elastic.generation import follow, generation, is_elastic, pending_change, survivors
from horo._elastic.interrupt import HostsUpdatedInterrupt
from horo._elastic.loop import run, run_fn
from horo._elastic.paces import Paces
from horo._elastic.standing import NO_DIGEST, Choice, Standing
from horo._elastic.state import ObjectState, State, digest_of_host
from horo._objects import gather_objects
from horo._sets import WORLD
from horo.torch._elastic_digests import digest_of, digest_of_digests, digest_of_one
from horo.torch._elastic_exchange import Package, exchange, layout_of, untrained
from horo.torch._elastic_handlers import (
    ModelStateHandler,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateHandler,
    get_handler_registry,
    handler_of,
    set_handler_registry,
)
from horo.torch._sampler import ElasticSampler
from horo.torch._saved_tensors import pack, unpack

if TYPE_CHECKING:
    from typing import Any


class TorchState(ObjectState):
    """The state of a training. Models, optimizers, ElasticSamplers and other objects with a
    state_dict() are kept by it; all other values as by ObjectState. Each keyword becomes an
    attribute of the same name.

    With a DistributedOptimizer among them, a change of the members rolls nothing back: the state
    continues as it is, and the step that could not end is repeated. commit() then copies no
    parameters. Without one, commit() copies everything, and after a loss the training continues
    from the last copy."""

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any) -> None:
        given = {"model": model, "optimizer": optimizer}
        given = {name: value for name, value in given.items() if value is not None}
        self._handlers: dict[str, StateHandler] = {}
        self._light = self._partial = False
        self._mixed = False  # a part of another rank's state has come
        self._paces = Paces()
        self._early: dict[int, tuple[int, bytes]] = {}  # address -> (torch's count of changes, digest)
        self._compared: dict[int, bytes] = {}  # address -> digest, within one sync()
        plain = {}
        for name, value in {**given, **kwargs}.items():
            handler = handler_of(value)
            if handler is None:
                plain[name] = value
            else:
                self._handlers[name] = handler
                object.__setattr__(self, name, value)
        super().__init__(**plain)
        for sampler in self._samplers().values():
            self._lead(sampler)
        self._save_lightly()
        follow(self)

    def __setattr__(self, name: str, value: Any) -> None:
        handler = self.__dict__.get("_handlers", {}).get(name)
        object.__setattr__(self, name, value)
        if handler is None:
            return
        handler.value = value
        if not self._knows(handler):
            handler.save()
        if isinstance(value, ElasticSampler):
            self._lead(value)

    # -- What it knows ---------------------------------------------------------------------------

    def _lead(self, sampler):
        """Tells the sampler which steps have ended."""
        clock = weakref.WeakMethod(self._backwards)
        sampler._follow(lambda: (clock() or _unknown)())

    def _samplers(self):
        found = {name: one.value for name, one in self._handlers.items()}
        return {name: one for name, one in found.items() if isinstance(one, ElasticSampler)}

    def _optimizers(self):
        """The handlers of the distributed optimizers."""
        every = self._handlers.values()
        optimizers = [one for one in every if isinstance(one, OptimizerStateHandler)]
        return [one for one in optimizers if one._reducer() is not None]

    def _parameters(self):
        """All parameters that distributed optimizers change, in their order."""
        groups = [group for one in self._optimizers() for group in one.value.param_groups]
        return [parameter for group in groups for parameter in group["params"]]

    def _knows(self, handler):
        """Whether distributed optimizers know all that the object needs."""
        if isinstance(handler, OptimizerStateHandler):
            return handler._reducer() is not None
        if not isinstance(handler, ModelStateHandler):
            return False
        known = {id(parameter) for parameter in self._parameters()}
        return bool(known) and handler.trains_only(known)

    def _backwards(self):
        """The backwards whose steps have ended, and all; None without one distributed optimizer."""
        reducers = [one._reducer() for one in self._optimizers()]
        return reducers[0].backwards() if len(reducers) == 1 else None

    # -- Copies ----------------------------------------------------------------------------------

    def commit(self) -> None:
        """Copies what no DistributedOptimizer knows, and ends this try if the members are to
        change. All ranks call it."""
        self._save_lightly()
        self._passed = -1
        self.check_host_updates()

    def _save_lightly(self):
        self._light = True
        try:
            self.save()
        finally:
            self._light = False

    def save(self) -> None:
        """Copies the whole state in memory, for restore()."""
        self._partial = False
        for handler in self._handlers.values():
            if self._light and self._knows(handler):
                self._partial = True
            else:
                handler.save()
        super().save()

    def restore(self) -> None:
        """Goes back to the last copy. Fails: RuntimeError (commit() has copied no parameters,
        because a DistributedOptimizer knows them; call save())."""
        if self._partial:
            raise RuntimeError(
                "restore() has no copy of the parameters: with a DistributedOptimizer, commit() "
                "makes none; call save() where the training may have to go back to"
            )
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    # -- Generations -----------------------------------------------------------------------------

    def _failed(self):
        if not self._optimizers():
            self.restore()

    def generation_ended(self) -> None:
        """The runtime has shut down, by the wrapper or by a loop that the program has written."""
        for sampler in self._samplers().values():
            sampler._forget_unfinished()

    def on_reset(self) -> None:
        """The process has entered a new generation: forgets announced changes, divides the samples
        anew, and calls reset() and the callbacks."""
        for sampler in self._samplers().values():
            sampler.reset()
        super().on_reset()

    def sync(self) -> None:
        """Makes the state equal on all ranks. Ranks that have just come, or that are behind,
        receive it from the lowest rank that is furthest. The others receive from there what no
        DistributedOptimizer knows, such as values and schedulers."""
        choice, done = self._agree(), self._gather_done()
        if _job.rank() == choice.source:
            self._warn(choice)
        if _job.size() > 1:
            self._exchange(choice)
        self._merge_done(done)
        self._synced()

    def _skipped_sync(self):
        self._merge_done(self._gather_done())

    def _synced(self):
        self._whole, self._mixed, self._early, self._compared = True, False, {}, {}
        reducers = self._reducers()
        for one in reducers:
            one.torn, one.ahead = False, 0
        if all(one.leaves_out for one in reducers):
            for one, ahead in zip(reducers, self._paces.ahead([one.steps for one in reducers])):
                one.ahead = ahead
        self._save_lightly()

    def _pass_boundary(self):
        if self._is_settled():
            self._paces.passed([one.steps for one in self._reducers()])
        super()._pass_boundary()

    def _gather_done(self):
        """For each rank: sampler -> (epoch, positions that the rank has recorded by itself)."""
        samplers = self._samplers() if self._whole else {}
        own = {
            name: (one.epoch, one.state_dict()["processed_positions"])
            for name, one in samplers.items()
        }
        return gather_objects(own, WORLD, "elastic.done") if self._samplers() else []

    def _merge_done(self, done):
        for name, sampler in self._samplers().items():
            found = [row[name] for row in done if name in row]
            extras = {one for epoch, own in found if epoch == sampler.epoch for one in own}
            sampler._merge(extras)

    def _prepare(self):
        """The process is about to enter the job. The digests that it will need are made while the
        others go on."""
        self._early = {one.data_ptr(): (one._version, digest_of_one(one)) for one in untrained(self)}

    def _digest_of(self, tensor):
        compared = self._compared.get(tensor.data_ptr())
        if compared is not None:
            return compared
        version, digest = self._early.get(tensor.data_ptr(), (None, b""))
        unchanged = version == tensor._version and not self._callbacks
        return digest if unchanged else digest_of_one(tensor)

    # -- The exchange ----------------------------------------------------------------------------

    def _standing(self):
        optimizers = self._optimizers()
        if not optimizers:
            return super()._standing()
        self._compared = {}
        reducers = [one._reducer() for one in optimizers]
        torn, steps = any(one.torn for one in reducers), sum(one.steps for one in reducers)
        if not (self._whole and is_elastic() and _job.size() > 1):
            torn = torn if self._whole else self._mixed
            return Standing(self._whole, torn, steps, NO_DIGEST, digest_of_host())
        parameters = self._parameters()
        digests = [digest_of_one(one) for one in parameters]
        self._compared = {one.data_ptr(): made for one, made in zip(parameters, digests)}
        digest = digest_of_digests(digests)
        return Standing(True, torn, steps, digest, digest_of_host(), self._layout())

    def _layout(self):
        """A digest of the layout of the large part; NO_DIGEST if it cannot be sent."""
        try:
            return layout_of(Package(self._known()))
        except Exception:  # if it is the source, it says why
            return NO_DIGEST

    def _exchange(self, choice: Choice):
        exchange(self, choice)

    def _warn(self, choice):
        """The source says what is unusual. After a step that was torn on all ranks, it goes back to
        its last copy, if it has one."""
        if choice.diverged:
            ranks = ", ".join(map(str, choice.diverged))
            warnings.warn(
                f"the parameters of rank(s) {ranks} differ from those of rank {choice.source} after "
                f"the same number of steps; all ranks take those of rank {choice.source}",
                stacklevel=2,
            )
        if choice.torn:
            restored = not self._partial
            if restored:
                self.restore()
            goes = "goes back to its last copy" if restored else "continues with what it has"
            reason = f"an exception has ended a step on all ranks; rank {choice.source} {goes}"
            warnings.warn(reason, stacklevel=2)

    def _known(self):
        """The large part of the state: what distributed optimizers know."""
        handlers = self._handlers.items()
        return {name: one.value.state_dict() for name, one in handlers if self._knows(one)}

    def _models(self):
        """The names of the models that distributed optimizers know."""
        handlers = self._handlers.items()
        models = [name for name, one in handlers if isinstance(one, ModelStateHandler)]
        return [name for name in models if self._knows(self._handlers[name])]

    def _common(self):
        """The part of the state that all ranks take from the source."""
        handlers = self._handlers.items()
        return {
            "steps": [one._reducer().steps for one in self._optimizers()],
            "commits": self._commits,
            "values": {name: _parcel(getattr(self, name)) for name in self._names},
            "objects": {name: one.value.state_dict() for name, one in handlers if not self._knows(one)},
            "options": [one._options() for one in self._optimizers()],
            "paces": (self._paces.begin, self._paces.even),
        }

    def _receive_common(self, common, received):
        """`received`: the large part has come, too."""
        for name, state in common["objects"].items():
            handler = self._handlers.get(name)
            if handler is not None and not self._knows(handler):
                handler.load(state)
        for one, options in zip(self._optimizers(), common["options"]):
            one._set_options(options)
        if received:
            for one, steps in zip(self._optimizers(), common["steps"]):
                one._reducer().steps, one._reducer().torn = steps, False
        self._commits = common["commits"]
        self._paces.begin, self._paces.even = common["paces"]
        values = common["values"].items()
        self._adopt({name: one.value if isinstance(one, _Parcel) else one for name, one in values})

    # -- Files -----------------------------------------------------------------------------------

    def _reducers(self):
        return [one._reducer() for one in self._optimizers()]

    def _is_settled(self):
        return not any(one.torn or one.within_step() for one in self._reducers())

    def _steps(self):
        reducers = self._reducers()
        return max((one.steps for one in reducers), default=-1)

    # -- Interruptions ---------------------------------------------------------------------------

    def _moved_at(self):
        return max([super()._moved_at(), *(one.ended_at for one in self._reducers())])

    def _interrupted(self):
        """With distributed optimizers, the step that could not end."""
        if not self._optimizers():
            return super()._interrupted()
        return 0 if self._asking else 1

    def _pack(self, buffers):
        return pack(self._content(), buffers)

    def _content(self):
        objects = {name: one.value.state_dict() for name, one in self._handlers.items()}
        steps = [one.steps for one in self._reducers()]
        return {**super()._content(), "objects": objects, "steps": steps}

    def _unpack(self, head, parts):
        self._take(unpack(parts))
        self._unpacked(head)
        self._synced()

    def _take(self, content):
        objects = content["objects"]
        differing = sorted(set(objects) ^ set(self._handlers))
        if differing:
            raise ValueError(f"the file and the state do not both have {', '.join(differing)}")
        super()._take(content)
        for name, state in objects.items():
            self._handlers[name].load(state)
        if len(content["steps"]) == len(self._optimizers()):
            for reducer, steps in zip(self._reducers(), content["steps"]):
                reducer.steps, reducer.torn = steps, False


class _Parcel:
    """A value that travels as it is, by pickle."""

    def __init__(self, value):
        self.value = value


def _parcel(value):
    """Tensors travel by themselves, other values with their exact types."""
    return value if isinstance(value, torch.Tensor) else _Parcel(value)


def _unknown():
    """The clock of a sampler whose state is gone."""


__all__ = [
    "ElasticSampler",
    "generation",
    "get_handler_registry",
    "HostsUpdatedInterrupt",
    "is_elastic",
    "ModelStateHandler",
    "ObjectState",
    "OptimizerStateHandler",
    "pending_change",
    "run",
    "run_fn",
    "SamplerStateHandler",
    "set_handler_registry",
    "State",
    "StateHandler",
    "survivors",
    "TorchState",
]
