# SPDX-License-Identifier: Apache-2.0
"""The public names of horovod.tensorflow, horovod.tensorflow.keras and horovod.keras with their
parameters and defaults, as their users know them.

Each row is a name and its parameters: "tensor" is one without a default, "name=None" one with. G stands
for the global process set, N for Compression.none. Horo may have further parameters after these.
"""

_JOB = dict.fromkeys(
    (
        "shutdown is_initialized stop_timeline size local_size cross_size rank local_rank cross_rank "
        "is_homogeneous mpi_threads_supported mpi_enabled gloo_enabled mpi_built gloo_built ddl_built "
        "ccl_built cuda_built rocm_built nccl_built"
    ).split(),
    "",
)
_JOB["init"] = "comm=None, process_sets=None"
_JOB["start_timeline"] = "file_path, mark_cycles=False"
_DEVICES = "device_dense='', device_sparse=''"
_FACTORS = "prescale_factor=1.0, postscale_factor=1.0"
_GROUPS = "num_groups=0, groups=None, process_set=G"
_TAPE = f"gradtape, {_DEVICES}, compression=N, sparse_as_dense=False, op=Average, gradient_predivide_factor=1.0, {_GROUPS}"
_KERAS = (
    f"optimizer, name=None, {_DEVICES}, compression=N, sparse_as_dense=False, gradient_predivide_factor=1.0, "
    f"op=Average, backward_passes_per_step=1, average_aggregated_gradients=False, {_GROUPS}"
)

TENSORFLOW = {
    **_JOB,
    "allreduce": (
        f"tensor, average=None, {_DEVICES}, compression=N, op=None, {_FACTORS}, name=None, process_set=G, "
        "ignore_name_scope=False"
    ),
    "grouped_allreduce": f"tensors, average=None, {_DEVICES}, compression=N, op=None, {_FACTORS}, process_set=G",
    "allgather": "tensor, name=None, ignore_name_scope=False, process_set=G",
    "grouped_allgather": "tensors, name=None, ignore_name_scope=False, process_set=G",
    "broadcast": "tensor, root_rank, name=None, ignore_name_scope=False, process_set=G",
    "broadcast_": "variables, root_rank, name=None, process_set=G",
    "alltoall": "tensor, splits=None, name=None, ignore_name_scope=False, process_set=G",
    "reducescatter": (
        f"tensor, device_dense='', compression=N, op=Average, name=None, process_set=G, {_FACTORS}"
    ),
    "grouped_reducescatter": f"tensors, device_dense='', compression=N, op=Average, process_set=G, {_FACTORS}",
    "join": "",
    "size_op": "process_set_id=0, name=None",
    "local_size_op": "name=None",
    "rank_op": "name=None",
    "local_rank_op": "name=None",
    "process_set_included_op": "process_set_id=0, name=None",
    "broadcast_variables": "variables, root_rank, process_set=G, inplace=False",
    "broadcast_object": "obj, root_rank=0, session=None, name=None, process_set=G",
    "broadcast_object_fn": "root_rank=0, session=None, name=None, process_set=G",
    "allgather_object": "obj, session=None, name=None, process_set=G",
    "broadcast_global_variables": "root_rank",
    "BroadcastGlobalVariablesHook": "root_rank, device=''",
    "DistributedOptimizer": (
        f"optimizer, name=None, use_locking=False, {_DEVICES}, compression=N, sparse_as_dense=False, "
        "backward_passes_per_step=1, op=Average, gradient_predivide_factor=1.0, "
        f"average_aggregated_gradients=False, {_GROUPS}, scale_local_gradients=True"
    ),
    "DistributedGradientTape": f"{_TAPE}, scale_local_gradients=True",
    "PartialDistributedGradientTape": f"{_TAPE}, local_layers=None, scale_local_gradients=True",
    "add_process_set": "process_set",
    "remove_process_set": "process_set",
}
TENSORFLOW_NAMES = (
    "Average Sum Adasum Min Max Product Compression global_process_set HorovodInternalError ProcessSet "
    "SyncBatchNormalization elastic"
).split()

KERAS = {
    **_JOB,
    "DistributedOptimizer": f"{_KERAS}, scale_local_gradients=True",
    "PartialDistributedOptimizer": f"{_KERAS}, local_layers=None, scale_local_gradients=True",
    "allreduce": f"value, name=None, average=None, {_FACTORS}, op=None, compression=N",
    "allgather": "value, name=None",
    "broadcast": "value, root_rank, name=None",
    "reducescatter": "value, name=None, op=Average",
    "broadcast_global_variables": "root_rank",
    "load_model": (
        "filepath, custom_optimizers=None, custom_objects=None, compression=N, legacy_opts=False"
    ),
}
KERAS_NAMES = "Average Sum Adasum Compression global_process_set ProcessSet callbacks elastic".split()

CALLBACKS = {
    "BroadcastGlobalVariablesCallback": "root_rank, device='', local_variables=None",
    "MetricAverageCallback": "device=''",
    "LearningRateScheduleCallback": (
        "initial_lr, multiplier, start_epoch=0, end_epoch=None, staircase=True, momentum_correction=True, "
        "steps_per_epoch=None"
    ),
    "LearningRateWarmupCallback": (
        "initial_lr, warmup_epochs=5, momentum_correction=True, steps_per_epoch=None, verbose=0"
    ),
    "BestModelCheckpoint": "monitor='val_loss', verbose=0, mode='auto', save_freq='epoch'",
}

ELASTIC = {
    "CommitStateCallback": "state, batches_per_commit=1",
    "UpdateBatchStateCallback": "state",
    "UpdateEpochStateCallback": "state",
    "KerasState": "model, optimizer=None, backend=None, **kwargs",
    "run": "func",
}

# Modules of Horovod that programs import, and their names.
MODULES = {
    "horovod.tensorflow": "init, allreduce, DistributedGradientTape, SyncBatchNormalization, elastic, __version__",
    "horovod.tensorflow.compression": "Compression, Compressor, NoneCompressor, FP16Compressor",
    "horovod.tensorflow.data.compute_service": "TfDataServiceConfig, tf_data_service, send_to_data_service",
    "horovod.tensorflow.data.compute_worker": "compute_worker_fn, main",
    "horovod.tensorflow.elastic": "run, TensorFlowState, TensorFlowKerasState",
    "horovod.tensorflow.functions": "broadcast_object, broadcast_object_fn, broadcast_variables, allgather_object",
    "horovod.tensorflow.mpi_ops": "init, size, rank, allgather, size_op",
    "horovod.tensorflow.sync_batch_norm": "SyncBatchNormalization",
    "horovod.tensorflow.keras": "DistributedOptimizer, load_model, callbacks, elastic",
    "horovod.tensorflow.keras.callbacks": ", ".join(CALLBACKS),
    "horovod.tensorflow.keras.elastic": ", ".join(ELASTIC),
    "horovod.keras": "DistributedOptimizer, load_model, callbacks, elastic",
    "horovod.keras.callbacks": ", ".join(CALLBACKS),
    "horovod.keras.elastic": ", ".join(ELASTIC),
}
