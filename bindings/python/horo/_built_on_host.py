# SPDX-License-Identifier: Apache-2.0
"""The answers of frameworks whose tensors always travel through the host's memory."""

from __future__ import annotations


def nccl_built() -> int:
    """0: tensors of GPUs are copied through the host's memory, whatever is installed."""
    return 0


def cuda_built() -> bool:
    """False: tensors of GPUs are copied through the host's memory."""
    return False


def rocm_built() -> bool:
    """False: tensors of GPUs are copied through the host's memory."""
    return False
