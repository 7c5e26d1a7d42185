# SPDX-License-Identifier: Apache-2.0
"""Where the library lies by which jax's own collectives on the CPU use Horo:

    export MPITRAMPOLINE_LIB=$(python3 -m horo.jax.mpi_library)
"""

from __future__ import annotations

import os

from horo import _native


def path() -> str:
    """The path of horo-mpiabi.so. Fails: FileNotFoundError (this build has none)."""
    folder = os.path.join(os.path.dirname(os.path.realpath(_native.path)), "horo")
    found = os.path.join(folder, "horo-mpiabi.so")
    if not os.path.exists(found):
        raise FileNotFoundError(f"{found} is not there; build Horo, or install its wheel")
    return found


if __name__ == "__main__":
    print(path())
