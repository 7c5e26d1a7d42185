# SPDX-License-Identifier: Apache-2.0
"""What moves tensors of GPUs for Keras: torch's stay there, those of other backends do not."""

from __future__ import annotations

import keras

from horo import _built


def _on_torch():
    backend = getattr(getattr(keras, "backend", None), "backend", None)
    return backend is not None and backend() == "torch"


def nccl_built() -> int:
    """As in horo.torch on the backend torch, else 0: tensors of GPUs are copied through the host's
    memory."""
    return _built.nccl_built() if _on_torch() else 0


def cuda_built() -> bool:
    """As in horo.torch on the backend torch, else False: tensors of GPUs are copied through the host's
    memory."""
    return _built.cuda_built() if _on_torch() else False


def rocm_built() -> bool:
    """As in horo.torch on the backend torch, else False: tensors of GPUs are copied through the host's
    memory."""
    return _built.rocm_built() if _on_torch() else False
