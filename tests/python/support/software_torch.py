# SPDX-License-Identifier: Apache-2.0
"""torch on the software device: tensors on "software:0", whose memory the host cannot read, with streams
that are threads with planned pauses. HORO_TEST_TORCH_DEVICE names the backend's file, and HORO_GPU_DRIVER
the software device, under the names of CUDA's driver or of HIP's runtime. Import this before horo.torch makes
an optimizer."""

import contextlib
import ctypes
import os

import torch
import torch.utils.backend_registration as registration

import horo.torch  # noqa: F401  # registers the devices of its own
from horo.torch import _devices

NAME = "software"
_path = os.environ["HORO_TEST_TORCH_DEVICE"]
torch.ops.load_library(_path)
# The driver keeps the interpreter lock: a call that waits would let no other thread run, so it has the other view.
_fast, _slow = ctypes.PyDLL(_path), ctypes.CDLL(_path)
_driver = ctypes.CDLL(os.environ["HORO_GPU_DRIVER"])
for _name, _result, _arguments in (
    ("horo_torch_stream", ctypes.c_void_p, [ctypes.c_int]),
    ("horo_torch_set_stream", ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]),
    ("horo_torch_new_stream", ctypes.c_void_p, [ctypes.c_int]),
    ("horo_torch_wait", None, [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]),
    ("horo_torch_record", None, [ctypes.c_void_p, ctypes.c_void_p]),
):
    _function = getattr(_fast, _name)
    _function.restype, _function.argtypes = _result, _arguments
_slow.horo_torch_synchronize.argtypes = [ctypes.c_int, ctypes.c_void_p]
_driver.horo_software_device_findings.restype = ctypes.c_size_t
_driver.horo_software_device_findings.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
_driver.horo_software_device_plan.argtypes = [ctypes.c_char_p]
_driver.horo_software_device_calls.restype = ctypes.c_size_t
_driver.horo_software_device_calls.argtypes = [ctypes.c_char_p]
COUNT = int(os.environ.get("HORO_TEST_DEVICES", "1"))
INDEX = int(os.environ.get("LOCAL_RANK", "0")) % COUNT  # the device of this rank
DEVICE = f"{NAME}:{INDEX}"


class _Module:
    """The functions that torch expects of a device's module, such as torch.cuda."""

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def is_initialized():
        return True

    @staticmethod
    def _is_in_bad_fork():
        return False

    @staticmethod
    def manual_seed_all(seed):
        del seed

    @staticmethod
    def device_count():
        return COUNT

    @staticmethod
    def current_device():
        return INDEX

    @staticmethod
    def get_amp_supported_dtype():
        return [torch.float16, torch.bfloat16]


registration.rename_privateuse1_backend(NAME)
torch._register_device_module(NAME, _Module())
registration.generate_methods_for_privateuse1_backend(for_storage=True)


def stream_of(index):
    """The handle of the calling thread's current stream."""
    return _fast.horo_torch_stream(index) or 0


def _note_use(tensor, index):
    _fast.horo_torch_record(tensor.untyped_storage().data_ptr(), stream_of(index))


def _alias(address, shape, like):
    return torch.ops.horo_software.alias(address, list(shape), like)


def _follow(index, stream):
    _fast.horo_torch_wait(index, stream_of(index), stream)


LIBRARY = "rocm" if hasattr(_driver, "hipInit") else "cuda"
_devices.register(NAME, stream_of, _note_use, _alias, _follow, LIBRARY)


def new_stream(index=INDEX):
    return _fast.horo_torch_new_stream(index)


@contextlib.contextmanager
def on_stream(handle, index=INDEX):
    """Inside, the thread's work is on this stream, behind what was on the one before; afterwards that one
    waits for it."""
    before = _fast.horo_torch_set_stream(index, handle) or 0
    _fast.horo_torch_wait(index, handle, before)
    try:
        yield
    finally:
        _fast.horo_torch_set_stream(index, before)
        _fast.horo_torch_wait(index, before, handle)


@contextlib.contextmanager
def apart_on(handle, index=INDEX):
    """Inside, the thread's work is on this stream, with no order to others."""
    before = _fast.horo_torch_set_stream(index, handle) or 0
    try:
        yield
    finally:
        _fast.horo_torch_set_stream(index, before)


def synchronize(index=INDEX):
    _slow.horo_torch_synchronize(index, stream_of(index))


def plan(text):
    """Replaces the plan of the device: pauses, faults; see tests/software_device/fault_plan.hpp."""
    text = f"devices={COUNT} {text}"
    assert _driver.horo_software_device_plan(text.encode()) == 0, text


def waits():
    """Calls of the driver that wait for the device, since the last plan."""
    names = (b"cuStreamSynchronize", b"cuEventSynchronize")
    return sum(_driver.horo_software_device_calls(name) for name in names)


def findings():
    """The findings since the last plan: uses that are not ordered, and uses of freed memory."""
    text = ctypes.create_string_buffer(1 << 16)
    _driver.horo_software_device_findings(text, len(text))
    return text.value.decode()


def require_no_findings():
    found = findings()
    assert not found, found


plan("")
