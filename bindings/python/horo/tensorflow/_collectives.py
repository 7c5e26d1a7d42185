# SPDX-License-Identifier: Apache-2.0
"""The collectives on TensorFlow's tensors, with Horovod's parameters. All are differentiable, and run
eagerly as well as in a tf.function. `device_dense`, `device_sparse` and `ignore_name_scope` have no
effect: the ops run on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from horo._arguments import AVERAGE, SUM, resolve_op, resolve_wire
from horo._sets import global_process_set, of
from horo.tensorflow import _ops
from horo.tensorflow._errors import not_converted
from horo.tensorflow._compression import Compression

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Union

    from horo._sets import ProcessSet
    from horo.tensorflow._compression import Compressor

    Tensors = list[tf.Tensor]
    Splits = Union[Sequence[int], tf.Tensor, None]


def _tensors(given):
    return [_ops.as_tensor(one, f"tensor {index}") for index, one in enumerate(given)]


def reduce_all(tensors, compression, operation, group, reduction):
    """Compresses, runs allreduce or reducescatter of horo.tensorflow._ops, and decompresses."""
    packed = [compression.compress(tensor) for tensor in tensors]
    results = operation([tensor for tensor, _ in packed], group, reduction)
    return [compression.decompress(one, kept) for one, (_, kept) in zip(results, packed)]


# -- Allreduce ------------------------------------------------------------------------------------


def sparse_allreduce(slices, op, group, compression=Compression.none):
    """The sum or average of IndexedSlices: all ranks' rows with their indices, without a merge of
    equal indices. Fails: NotImplementedError (another op)."""
    if op not in (AVERAGE, SUM):
        raise NotImplementedError(
            "IndexedSlices reduce by Average or Sum; use sparse_as_dense=True, or tf.convert_to_tensor()"
        )
    values, kept = compression.compress(_ops.as_tensor(slices.values, "values of the IndexedSlices"))
    name = None if group.name is None else f"{group.name}.values"
    where = None if group.name is None else f"{group.name}.indices"
    (gathered,), _ = _ops.allgather([values], group._replace(name=name))
    (indices,), _ = _ops.allgather([slices.indices], group._replace(name=where))
    gathered = compression.decompress(gathered, kept)
    if op == AVERAGE:
        size = _ops.place("set_size", group.names.set)
        gathered = gathered / tf.cast(size, gathered.dtype)
    return tf.IndexedSlices(gathered, indices, dense_shape=slices.dense_shape)


@not_converted
def allreduce(
    tensor: Any,
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> Any:
    """Reduces the tensors of all ranks: their average, unless `op` says otherwise. IndexedSlices give
    IndexedSlices with the rows of all ranks."""
    del device_dense, device_sparse, ignore_name_scope
    group, how = _ops.Group(of(process_set), name), resolve_op(average, op)
    if isinstance(tensor, tf.IndexedSlices):
        if (prescale_factor, postscale_factor) != (1.0, 1.0):
            raise NotImplementedError("IndexedSlices have no prescale_factor and postscale_factor")
        return sparse_allreduce(tensor, how, group, compression)
    wire = resolve_wire(wire_dtype, error_feedback)
    reduction = _ops.Reduction(how, prescale_factor, postscale_factor, wire)
    return reduce_all([_ops.as_tensor(tensor)], compression, _ops.allreduce, group, reduction)[0]


@not_converted
def grouped_allreduce(
    tensors: Iterable[Any],
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    name: str | None = None,
    wire_dtype: Any = None,
    error_feedback: bool | None = None,
) -> Tensors:
    """Reduces several tensors, which become ready together. Returns a list."""
    del device_dense, device_sparse
    group, how = _ops.Group(of(process_set), name), resolve_op(average, op)
    wire = resolve_wire(wire_dtype, error_feedback)
    reduction = _ops.Reduction(how, prescale_factor, postscale_factor, wire)
    given = _tensors(tensors)
    return reduce_all(given, compression, _ops.allreduce, group, reduction) if given else []


# -- Reducescatter --------------------------------------------------------------------------------


@not_converted
def reducescatter(
    tensor: Any,
    device_dense: str = "",
    compression: type[Compressor] = Compression.none,
    op: int | None = AVERAGE,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> tf.Tensor:
    """Reduces like allreduce and returns this rank's rows. Dimension 0 is divided in rank order; when
    it does not divide evenly, the first ranks get one row more."""
    del device_dense
    group = _ops.Group(of(process_set), name)
    reduction = _ops.Reduction(resolve_op(None, op), prescale_factor, postscale_factor)
    return reduce_all([_rows(tensor)], compression, _ops.reducescatter, group, reduction)[0]


@not_converted
def grouped_reducescatter(
    tensors: Iterable[Any],
    device_dense: str = "",
    compression: type[Compressor] = Compression.none,
    op: int | None = AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
) -> Tensors:
    """Does several reducescatters together and returns a list."""
    del device_dense
    group = _ops.Group(of(process_set), name)
    reduction = _ops.Reduction(resolve_op(None, op), prescale_factor, postscale_factor)
    given = [_rows(one) for one in tensors]
    return reduce_all(given, compression, _ops.reducescatter, group, reduction) if given else []


# -- Allgather and alltoall -----------------------------------------------------------------------


def _rows(given):
    tensor = _ops.as_tensor(given)
    if tensor.shape.rank == 0:
        raise ValueError("the tensor is a scalar and has no rows; use tf.reshape(tensor, [1])")
    return tensor


@not_converted
def allgather(
    tensor: Any,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> tf.Tensor:
    """The tensors of all ranks, concatenated along dimension 0 in rank order. Dimension 0 may differ
    between ranks."""
    del ignore_name_scope
    return _ops.allgather([_rows(tensor)], _ops.Group(of(process_set), name))[0][0]


@not_converted
def grouped_allgather(
    tensors: Iterable[Any],
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Tensors:
    """Does several allgathers together and returns a list."""
    del ignore_name_scope
    given, group = [_rows(one) for one in tensors], _ops.Group(of(process_set), name)
    return _ops.allgather(given, group)[0] if given else []


@not_converted
def alltoall(
    tensor: Any,
    splits: Splits = None,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Sends `splits[r]` rows to rank r, or the same number of rows to every rank when there are no
    splits. Returns the received rows in rank order; with splits, the pair (rows, number of rows
    received from each rank)."""
    del ignore_name_scope
    group = _ops.Group(of(process_set), name)
    result, received = _ops.alltoall(_rows(tensor), _ops.as_splits(splits), group)
    return result if splits is None else (result, received)


# -- Broadcast ------------------------------------------------------------------------------------


@not_converted
def broadcast(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> tf.Tensor:
    """Returns the root's tensor on every rank. `root_rank` is a rank of the whole job."""
    del ignore_name_scope
    group = _ops.Group(of(process_set), name)
    moved, dtype = _ops.as_bits(tensor)
    return _ops.from_bits(_ops.broadcast([moved], root_rank, group)[0], dtype)


# -- This rank, when the op runs ------------------------------------------------------------------


def size_op(process_set_id: int = 0, name: str | None = None) -> tf.Tensor:
    """The number of ranks in a process set, as a tensor whose value is found when the op runs."""
    return _ops.place("set_size", process_set_id, name)


def local_size_op(name: str | None = None) -> tf.Tensor:
    """Like local_size(), found when the op runs."""
    return _ops.place("local_size", 0, name)


def rank_op(name: str | None = None) -> tf.Tensor:
    """Like rank(), found when the op runs."""
    return _ops.place("rank", 0, name)


def local_rank_op(name: str | None = None) -> tf.Tensor:
    """Like local_rank(), found when the op runs."""
    return _ops.place("local_rank", 0, name)


def process_set_included_op(process_set_id: int = 0, name: str | None = None) -> tf.Tensor:
    """1 if this rank is in the process set, else 0, found when the op runs."""
    return tf.cast(_ops.place("set_rank", process_set_id, name) >= 0, tf.int32)
