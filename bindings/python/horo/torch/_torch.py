# SPDX-License-Identifier: Apache-2.0
"""Refuses to import without torch, or with one that is too old."""

OLDEST = (1, 13)

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise  # torch is installed, but one of its own imports failed
    raise ImportError(
        "horo.torch needs PyTorch, 1.13 or newer: "
        "apt-get install python3-torch, or pip install torch"
    ) from None


def _number(version):
    return tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())


if _number(torch.__version__) < OLDEST:
    raise ImportError(f"horo.torch needs PyTorch 1.13 or newer; this is {torch.__version__}")
