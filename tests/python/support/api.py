# SPDX-License-Identifier: Apache-2.0
"""The public names of horovod.torch with their parameters and defaults, as its users know them.

Each row is a name and its parameters: "tensor" is one without a default, "name=None" one with. G
stands for the global process set. Horo may have further parameters after these.
"""

_REDUCE = "average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0"
_COMPRESSED = _REDUCE.replace("name=None,", "name=None, compression=Compression.none,")
_SCATTER = "op=Average, process_set=G, prescale_factor=1.0, postscale_factor=1.0"

FUNCTIONS = {
    "init": "comm=None, process_sets=None",
    "shutdown": "",
    "is_initialized": "",
    "start_timeline": "file_path, mark_cycles=False",
    "stop_timeline": "",
    "size": "",
    "local_size": "",
    "cross_size": "",
    "rank": "",
    "local_rank": "",
    "cross_rank": "",
    "is_homogeneous": "",
    "mpi_threads_supported": "",
    "mpi_enabled": "",
    "gloo_enabled": "",
    "mpi_built": "",
    "gloo_built": "",
    "ddl_built": "",
    "ccl_built": "",
    "cuda_built": "",
    "rocm_built": "",
    "nccl_built": "",
    "allreduce": f"tensor, {_COMPRESSED}, process_set=G",
    "allreduce_async": f"tensor, {_REDUCE}, process_set=G",
    "allreduce_": f"tensor, {_REDUCE}, process_set=G",
    "allreduce_async_": f"tensor, {_REDUCE}, process_set=G",
    "grouped_allreduce": f"tensors, {_COMPRESSED}, process_set=G",
    "grouped_allreduce_async": f"tensors, {_REDUCE}, process_set=G",
    "grouped_allreduce_": f"tensors, {_REDUCE}, process_set=G",
    "grouped_allreduce_async_": f"tensors, {_REDUCE}, process_set=G",
    "sparse_allreduce_async": "tensor, name, op, process_set=G",
    "allgather": "tensor, name=None, process_set=G",
    "allgather_async": "tensor, name=None, process_set=G",
    "grouped_allgather": "tensors, name=None, process_set=G",
    "grouped_allgather_async": "tensors, name=None, process_set=G",
    "broadcast": "tensor, root_rank, name=None, process_set=G",
    "broadcast_async": "tensor, root_rank, name=None, process_set=G",
    "broadcast_": "tensor, root_rank, name=None, process_set=G",
    "broadcast_async_": "tensor, root_rank, name=None, process_set=G",
    "alltoall": "tensor, splits=None, name=None, process_set=G",
    "alltoall_async": "tensor, splits=None, name=None, process_set=G",
    "reducescatter": f"tensor, name=None, compression=Compression.none, {_SCATTER}",
    "reducescatter_async": f"tensor, name=None, {_SCATTER}",
    "grouped_reducescatter": f"tensors, name=None, compression=Compression.none, {_SCATTER}",
    "grouped_reducescatter_async": f"tensors, name=None, {_SCATTER}",
    "join": "device=-1",
    "barrier": "process_set=G",
    "poll": "handle",
    "synchronize": "handle",
    "broadcast_parameters": "params, root_rank",
    "broadcast_optimizer_state": "optimizer, root_rank, model=None",
    "broadcast_object": "obj, root_rank=0, name=None, process_set=G",
    "allgather_object": "obj, name=None",
    "SyncBatchNorm": "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True",
    "ProcessSet": "ranks_or_comm",
    "add_process_set": "process_set",
    "remove_process_set": "process_set",
    "DistributedOptimizer": (
        "optimizer, named_parameters=None, compression=Compression.none, "
        "backward_passes_per_step=1, op=Average, gradient_predivide_factor=1.0, num_groups=0, "
        "groups=None, sparse_as_dense=False, process_set=G"
    ),
}

# Other names of horo.torch, without a signature to compare.
NAMES = ("Compression", "global_process_set", "HorovodInternalError")

COMPRESSIONS = ("none", "fp16")

# Modules of Horovod that programs import, and their names; horovod.torch has all names above.
MODULES = {
    "horovod": "run, __version__",
    "horovod.common.basics": "HorovodBasics",
    "horovod.common.elastic": "State, ObjectState, run_fn, notification_manager",
    "horovod.common.exceptions": (
        "HorovodInternalError, HostsUpdatedInterrupt, HorovodVersionMismatchError"
    ),
    "horovod.common.process_sets": (
        "ProcessSet, global_process_set, add_process_set, remove_process_set, "
        "get_process_set_ids_and_ranks"
    ),
    "horovod.common.util": (
        "extension_available, gpu_available, mpi_built, gloo_built, nccl_built, ddl_built, ccl_built, "
        "check_extension, split_list, num_rank_is_power_2, rocm_built, cuda_built, EXTENSIONS, "
        "get_ext_suffix, get_extension_full_path, check_installed_version, env, is_iterable, "
        "get_average_backwards_compatibility_fun, is_version_greater_equal_than"
    ),
    "horovod.data": "BaseDataLoader, AsyncDataLoaderMixin",
    "horovod.data.data_loader_base": "BaseDataLoader, AsyncDataLoaderMixin",
    "horovod.runner": "run",
    "horovod.runner.elastic.discovery": "HostDiscovery, HostDiscoveryScript, FixedHosts",
    "horovod.runner.elastic.worker": "HostUpdateResult, WorkerNotificationManager",
    "horovod.torch.elastic": "run, run_fn, reset, init, shutdown, TorchState, ElasticSampler",
    "horovod.torch.elastic.sampler": "ElasticSampler",
    "horovod.torch.elastic.state": (
        "TorchState, StateHandler, ModelStateHandler, OptimizerStateHandler, SamplerStateHandler, "
        "get_handler_registry, set_handler_registry"
    ),
    "horovod.torch.compression": "Compression, Compressor, NoneCompressor, FP16Compressor",
    "horovod.torch.functions": (
        "allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters"
    ),
    "horovod.torch.optimizer": "DistributedOptimizer",
    "horovod.torch.sync_batch_norm": "SyncBatchNorm",
}

OPS = ("Average", "Sum", "Adasum", "Min", "Max", "Product")

PROCESS_SET = ("process_set_id", "ranks", "mpi_comm", "size", "rank", "included")

OPTIMIZER = (
    "synchronize",
    "step",
    "skip_synchronize",
    "zero_grad",
    "set_backward_passes_per_step",
    "load_state_dict",
    "param_groups",
    "state",
)
