# SPDX-License-Identifier: Apache-2.0
"""The types of devices whose tensors go to the runtime as they are, without a copy to the host.

KINDS has one row for each type of device. "cuda" is the only one that Horo brings along; a torch that
is built for ROCm calls AMD's devices so, too. Another backend of torch, whose streams and memory are
those of CUDA's driver or HIP's runtime, can add a row by register(); Horo's tests do so for their
device of software.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from horo import _extension
from horo._device import dlpack
from horo._device.places import IN_DEVICE, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from horo._device.places import Place

HIP: str | None = getattr(torch.version, "hip", None)  # the version of HIP that torch is built for
KINDS: dict[str, Kind] = {}  # by the type of a torch.device


def register(
    name: str,
    stream: Callable[[int], int],
    note_use: Callable[[Tensor, int], object],
    alias: Callable[[int, tuple[int, ...], Tensor], Tensor],
    follow: Callable[[int, int], object],
    library: str = "cuda",
) -> None:
    """Tensors whose device is of type `name`, and that have an attribute is_NAME, go to the runtime
    by their address. `stream(index)`: the handle (CUstream) of the calling thread's current stream.
    `note_use(tensor, index)`: as tensor.record_stream(that stream). `alias(address, shape, like)`: a
    tensor over memory of the device that is owned elsewhere. `follow(index, stream)`: the current
    stream waits for the work that is now on that one. `library`: "cuda" for CUDA's
    driver, "rocm" for HIP's runtime."""

    def note_use_of(storage, index):
        note_use(torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage), index)

    kind = KINDS[name] = Kind(name, stream, note_use_of, alias, follow, library)
    if _extension.module is not None:
        _extension.module.read_device(f"is_{name}", stream, kind.places, IN_DEVICE)


def place_of(tensor: Tensor) -> Place | None:
    """The place of a tensor in a device's memory. None: it is in the host's memory, or travels
    through it."""
    if tensor.is_cpu:
        return None
    kind = KINDS.get(tensor.device.type)
    return None if kind is None else kind.place(tensor.get_device())


def made_at(tensor: Tensor) -> Place | None:
    """The device and the calling thread's current stream there, on which a tensor has just been
    computed, whether or not the runtime reaches it. None: it is in the host's memory, or on a device
    of another type."""
    if tensor.is_cpu:
        return None
    kind = KINDS.get(tensor.device.type)
    return None if kind is None else kind.at(tensor.get_device())


def _note_use(tensor, index):
    tensor.record_stream(torch.cuda.current_stream(index))


def _alias(address, shape, like):
    dtype = str(like.dtype).replace("torch.", "")
    device = (dlpack.CUDA if HIP is None else dlpack.ROCM, like.get_device())
    return torch.utils.dlpack.from_dlpack(dlpack.capsule(address, shape, dtype, device))


def _follow(index, stream):
    # For 0 an ExternalStream would be a stream of torch's pool.
    other = torch.cuda.ExternalStream(stream, index) if stream else torch.cuda.default_stream(index)
    torch.cuda.current_stream(index).wait_stream(other)


def _current_stream(index):
    return torch.cuda.current_stream(index).cuda_stream


def _register_cuda():
    # torch's own function for compiled code takes a tenth of the time.
    stream: Any = getattr(torch._C, "_cuda_getCurrentRawStream", _current_stream)
    register("cuda", stream, _note_use, _alias, _follow, "cuda" if HIP is None else "rocm")


_register_cuda()
