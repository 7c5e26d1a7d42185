# SPDX-License-Identifier: Apache-2.0
"""Copies parameters from one rank to all, so that all start equal."""

from __future__ import annotations

import types
from typing import Any

from horo import _job
from horo._handles import synchronize
from horo._sets import WORLD
from horo.mxnet._face import FACE, MXNET
from horo.mxnet._mxnet import mxnet


def broadcast_parameters(params: Any, root_rank: int = 0, prefix: str | None = None) -> None:
    """Gives all ranks the parameters of rank `root_rank`, in place. `params`: collect_params() of a
    Gluon block, or a dict of arrays, such as those of Module.get_params(). A parameter whose shape
    MXNet does not know yet follows when it is initialised. `prefix` tells several calls apart."""
    _job.need()
    named = []
    for name, param in sorted(_items(params)):
        full = f"{prefix or ''}{name}"
        if isinstance(param, mxnet.gluon.parameter.Parameter):
            try:
                named += [(f"{full}.{i}", array) for i, array in enumerate(param.list_data())]
            except mxnet.gluon.parameter.DeferredInitializationError:
                _follow(param, full, root_rank)
        else:
            named.append((full, param))
    _broadcast(named, root_rank)


def _items(params):
    if not hasattr(params, "items"):
        raise ValueError(
            f"params is a {type(params).__name__}; give collect_params() or a dict of arrays"
        )
    return params.items()


def _follow(param, name, root_rank):
    """Broadcasts the parameter once MXNet has initialised it."""
    initialise = param._init_impl

    def initialise_equally(_self, data, *arguments, **options):
        initialise(data, *arguments, **options)
        arrays = param.list_data()
        _broadcast([(f"{name}.{i}", array) for i, array in enumerate(arrays)], root_rank)

    param._init_impl = types.MethodType(initialise_equally, param)


def _broadcast(named, root_rank):
    for _, array in named:
        FACE.check(array)
    handles = [
        MXNET.start_broadcast(array, array, root_rank, WORLD, f"parameters.{name}")
        for name, array in named
    ]
    for handle in handles:
        synchronize(handle)
