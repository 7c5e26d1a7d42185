# SPDX-License-Identifier: Apache-2.0
"""The backend `horo` of torch.distributed, from torch 1.13 on.

    import horo.torch.distributed

    torch.distributed.init_process_group("horo")                   # or "cpu:horo,cuda:nccl"

The program can be started by `horo run`, torchrun, mpirun or srun, and may spawn its ranks itself.
`horo run --torch-backend horo` gives the backend to programs that ask for gloo, unchanged.
"""

from __future__ import annotations

from horo.torch.distributed._register import register, replace_gloo

register()

__all__ = ["register", "replace_gloo"]
