# SPDX-License-Identifier: Apache-2.0
"""Refuses where there is no torch, or one that is too old."""

OLDEST = (1, 13)

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise  # it is there, and lacks something itself
    raise ImportError(
        "horo.torch needs PyTorch, 1.13 or newer: "
        "apt-get install python3-torch, or pip install torch"
    ) from None


def _number(version):
    return tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())


if _number(torch.__version__) < OLDEST:
    raise ImportError(f"horo.torch needs PyTorch 1.13 or newer; this is {torch.__version__}")
