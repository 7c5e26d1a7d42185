# SPDX-License-Identifier: Apache-2.0
"""Pickles values whose tensors go into memory of their own, so that a copy of the training's state
costs one copy of each tensor, and a file is written without another one."""

from __future__ import annotations

import ctypes
import io
import pickle
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from typing import Any

    from horo._elastic.saving import Buffers

_KINDS = (torch.Tensor, torch.nn.Parameter)


def pack(value: Any, buffers: Buffers) -> list[Any]:
    """The pickled value, and the memory of each tensor in it. Tensors that share memory get copies of
    their own. Fails: whatever pickle raises, before any tensor is copied."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(value)
    return [stream.getbuffer(), *(_copy(tensor, buffers) for tensor in pickler.tensors)]


def unpack(parts: list[Any]) -> Any:
    """The value that pack() was given. Its tensors are in the memory of the CPU. The bytes must come
    from a source that may run any code here. Fails: whatever pickle raises, ValueError."""
    return _Unpickler(io.BytesIO(parts[0]), parts[1:]).load()


class _Pickler(pickle.Pickler):
    def __init__(self, stream):
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self.tensors: list[Any] = []
        self._indices: dict[int, int] = {}

    def persistent_id(self, value):
        """A tuple that stands for a tensor. None: pickle does as it always does."""
        if type(value) not in _KINDS or value.layout is not torch.strided or value.is_quantized:
            return None
        if id(value) not in self._indices:
            self._indices[id(value)] = len(self.tensors)
            self.tensors.append(value)
        index = self._indices[id(value)]
        is_parameter = type(value) is torch.nn.Parameter
        return index, value.dtype, tuple(value.shape), value.requires_grad, is_parameter


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream, memory):
        super().__init__(stream)
        self._memory = memory
        self._made: dict[int, Any] = {}

    def persistent_load(self, told):
        index, dtype, shape, requires_grad, is_parameter = told
        if index not in self._made:
            tensor = torch.empty(shape, dtype=dtype)
            _fill(tensor, self._memory[index])
            if is_parameter:
                tensor = torch.nn.Parameter(tensor, requires_grad)
            self._made[index] = tensor.requires_grad_(requires_grad)
        return self._made[index]


def _copy(tensor, buffers):
    flat = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    length = flat.numel() * flat.element_size()
    memory = buffers.take(length)
    if length:
        target = (ctypes.c_char * length).from_buffer(memory)
        ctypes.memmove(target, flat.data_ptr(), length)
    return memory


def _fill(tensor, memory):
    length = tensor.numel() * tensor.element_size()
    if length != len(memory):
        raise ValueError(f"a tensor of {length} bytes has {len(memory)} in the file")
    if length:
        ctypes.memmove(tensor.data_ptr(), (ctypes.c_char * length).from_buffer(memory), length)
