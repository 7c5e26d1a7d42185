# SPDX-License-Identifier: Apache-2.0
"""Which way tensors of a device take: cuda_built(), nccl_built() and check-build say what a collective does
here, and where the device cannot be reached, tensors go through the host with one warning, or the error that
was asked for."""

import json
import os
import subprocess

import job

PROGRAM = """
    import sys, warnings
    sys.path.insert(0, {support!r})
    import torch
    import horo.torch as horo
    import software_torch as software
    from horo.torch import _devices
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        horo.init()
        print("cuda", horo.cuda_built(), "nccl", bool(horo.nccl_built()), "rocm", horo.rocm_built())
        total = [horo.allreduce(torch.ones(5).to(software.DEVICE), op=horo.Sum) for _ in range(3)]
        print("sum", total[0].cpu().tolist(), total[0].device.type)
        print("reached", _devices.place_of(total[0]) is not None)
    for one in told:
        print("warned:", one.message)
    horo.shutdown()
"""
HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = PROGRAM.format(support=os.path.join(HERE, "support"))


def ran(environment, program=PROGRAM):
    done = job.run_alone(program, **environment)
    assert done.code == 0, done.output
    return done.output


def check_build(*arguments, **environment):
    done = subprocess.run(
        [job.HORO, "check-build", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_device_that_is_reached():
    output = ran({"HORO_GPU_OPERATIONS": "auto"})
    assert "cuda True nccl True rocm False" in output
    assert "sum [1.0, 1.0, 1.0, 1.0, 1.0] software" in output
    assert "reached True" in output and "warned" not in output


def test_what_is_built_is_known_without_a_start_of_the_driver_in_this_process():
    """A process that has started CUDA can fork no children that use it, such as data loaders."""
    output = ran(
        {"HORO_GPU_OPERATIONS": "auto"},
        """
        import ctypes, os
        import horo.torch as horo
        assert horo.cuda_built() and horo.nccl_built()
        driver, count = ctypes.CDLL(os.environ["HORO_GPU_DRIVER"]), ctypes.c_int()
        assert horo.cuda_built()  # the driver is loaded, and has not been started
        assert driver.horo_software_device_calls(b"cuInit") == 0
        assert driver.cuDeviceGetCount(ctypes.byref(count)) == 3  # CUDA_ERROR_NOT_INITIALIZED
        child = os.fork()
        if not child:
            os._exit(driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)))
        assert os.waitpid(child, 0)[1] == 0
        assert driver.cuInit(0) == 0
        assert horo.cuda_built()  # now it answers itself
        print("all is well")
        """,
    )
    assert "all is well" in output


def test_nccl_is_not_used_when_another_way_is_named_or_it_is_not_there():
    assert "cuda True nccl False" in ran({"HORO_GPU_OPERATIONS": "staged"})
    output = ran({"HORO_GPU_OPERATIONS": "auto", "HORO_GPU_NCCL": "/nowhere/libnccl.so.2"})
    assert "cuda True nccl False" in output and "reached True" in output


# The backend of torch has found its driver by then, so that only Horo finds none.
UNREACHED = PROGRAM.replace(
    "    import software_torch as software\n",
    "    import software_torch as software\n"
    "    torch.ones(1).to(software.DEVICE)\n"
    '    import os; os.environ["HORO_GPU_DRIVER"] = "/nowhere/libcuda.so.1"\n',
)


def test_a_driver_that_is_not_there_is_one_warning_and_a_copy_through_the_host():
    # libhoro reads the environment of C, which os.environ changes.
    output = ran({"HORO_GPU_OPERATIONS": "auto"}, UNREACHED)
    assert "cuda False nccl False" in output
    assert "sum [1.0, 1.0, 1.0, 1.0, 1.0] software" in output
    assert "reached False" in output
    assert output.count("warned:") == 1
    assert "tensors on software devices are copied through the host's memory: CUDA's driver" in output
    assert "/nowhere/libcuda.so.1" in output


def test_a_driver_that_is_not_there_is_an_error_when_a_way_is_named():
    done = job.run_alone(UNREACHED, HORO_GPU_OPERATIONS="staged")
    assert done.code != 0
    assert "StartError: CUDA's driver cannot be loaded: /nowhere/libcuda.so.1" in done.output


def test_check_build_says_what_collectives_use():
    table = check_build()
    assert "[X] cuda         PyTorch's and C programs' tensors stay in GPU memory" in table
    assert "[X] nccl         NCCL between GPUs" in table
    assert "[X] NCCL" in check_build("--horovod")
    none = {"HORO_GPU_DRIVER": "/nowhere/libcuda.so.1"}
    table = check_build(**none)
    assert "[ ] cuda         CUDA's driver cannot be loaded: /nowhere/libcuda.so.1" in table
    assert "[ ] nccl         CUDA's driver cannot be loaded" in table
    assert "[ ] NCCL" in check_build("--horovod", **none)
    table = check_build(HORO_GPU_OPERATIONS="staged")
    assert "[X] cuda" in table and "[ ] nccl         HORO_GPU_OPERATIONS names another way" in table
    table = check_build(CUDA_VISIBLE_DEVICES="")
    assert "[ ] cuda         CUDA's driver sees no device: CUDA_VISIBLE_DEVICES is ''" in table


ADASUM = """
    import sys
    sys.path.insert(0, {support!r})
    import torch
    import horo.torch as horo
    import software_torch as software
    from horo import _handles, _job
    from horo.torch import _devices

    horo.init()
    assert _job.backend(0) == "tcp", _job.backend(0)
    host = (torch.arange(1000) % 7 + horo.rank() + 1).float()
    device = host.to(software.DEVICE)
    plain = horo.allreduce_async(device, name="plain", op=horo.Adasum)
    group = horo.grouped_allreduce_async([device, device * 2], name="group", op=horo.Adasum)
    for handle in (plain, *_handles.PENDING[group][1]):
        assert _handles.PENDING[handle][2] is _devices.place_of(device), "the tensor is copied"
    found = [horo.synchronize(plain), *horo.synchronize(group)]
    expected = [horo.allreduce(one, op=horo.Adasum) for one in (host, host, host * 2)]
    for one, other in zip(found, expected):
        assert one.device.type == software.NAME and torch.equal(one.cpu(), other)
    software.require_no_findings()
    horo.shutdown()
"""


def test_adasum_between_hosts_stays_on_the_device():
    for rank in job.run_on_two_hosts(ADASUM.format(support=os.path.join(HERE, "support"))):
        assert rank.code == 0, rank.output


HIP = os.environ["HORO_TEST_HIP"]  # the software device under the names of HIP's runtime


def test_a_device_that_is_reached_by_hip():
    output = ran({"HORO_GPU_OPERATIONS": "auto", "HORO_GPU_DRIVER": HIP})
    assert "cuda False nccl True rocm True" in output
    assert "sum [1.0, 1.0, 1.0, 1.0, 1.0] software" in output
    assert "reached True" in output and "warned" not in output


def test_check_build_says_that_hip_and_rccl_are_used():
    table = check_build(HORO_GPU_DRIVER=HIP)
    assert f"[X] rocm         PyTorch's and C programs' tensors stay in the memory of AMD's GPUs, by {HIP}" in table
    assert "[ ] cuda         this process uses HIP's runtime, not CUDA's driver" in table
    assert "[X] nccl         RCCL between GPUs, by " in table
    table = check_build(HORO_GPU_DRIVER=HIP, HORO_GPU_NCCL="/nowhere/librccl.so.1")
    assert "[ ] nccl         RCCL cannot be loaded: /nowhere/librccl.so.1" in table
    table = check_build(HORO_GPU_DRIVER=HIP, HIP_VISIBLE_DEVICES="")
    assert "[ ] rocm         HIP's runtime sees no device: HIP_VISIBLE_DEVICES is ''" in table
    assert "[ ] rocm         this process uses CUDA's driver, not HIP's runtime" in check_build()


# A torch that is built for ROCm has this version, and calls AMD's devices "cuda".
ROCM_TORCH = """
    import warnings
    import torch
    torch.version.hip = "6.4.43482"
    import horo.torch as horo
    from horo._device import dlpack
    from horo.torch import _devices
    torch.utils.dlpack.from_dlpack = lambda capsule: dlpack.Seen(capsule).device
    horo.init()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        print("usable", _devices.KINDS["cuda"].usable())
    class Like:
        dtype = torch.float32
        @staticmethod
        def get_device():
            return 0
    print("exported as", _devices.KINDS["cuda"].alias(4096, (1,), Like))
    for one in told:
        print("warned:", one.message)
    horo.shutdown()
"""


def test_a_torch_for_rocm_uses_hip():
    output = ran({"HORO_GPU_DRIVER": HIP}, ROCM_TORCH)
    assert "usable True" in output and "warned" not in output
    assert "exported as (10, 0)" in output  # kDLROCM
    output = ran({}, ROCM_TORCH)
    assert "usable False" in output
    assert "tensors on cuda devices are copied through the host's memory: this process uses CUDA's driver" in output


def test_the_program_that_measures_submissions_runs_and_no_step_waits():
    """scripts/gpu-check runs it on a machine with a GPU. The times of the software device count nowhere."""
    program = os.path.join(HERE, "..", "..", "bench", "gpu", "torch_gpu.py")
    device = os.path.join(HERE, "support", "software_torch.py")
    done = job.run(2, [program, "submit"], options=["--tag", "off"], HORO_BENCH_TORCH_DEVICE=device)
    assert done.code == 0, done.output
    lines = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    figures = {line["what"]: line["middle"] for line in lines}
    assert figures["host time per submitted tensor"] > 0
    assert figures["calls that wait for the device in a step"] == 0
