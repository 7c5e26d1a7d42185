# SPDX-License-Identifier: Apache-2.0
"""Whether ranks that come to an elastic job run the same program as those that are there.

A new rank starts the script as it is on the disk by then, on a host that may have other versions of
the libraries. Nothing else would tell: the ranks' operations may well fit together.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from typing import TYPE_CHECKING

from horo import _job
from horo._elastic import generation
from horo._elastic.state import gather
from horo._objects import gather_objects
from horo._sets import WORLD

if TYPE_CHECKING:
    from typing import Any

_MOST_BYTES = 1 << 24  # of a script that is read


def _script() -> dict[str, str]:
    """The name of the program's file, with a digest of what is in it now."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    if not path:
        return {}
    try:
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read(_MOST_BYTES)).hexdigest()[:12]
    except OSError:
        return {}
    return {os.path.basename(path): f"sha256 {digest}"}


_own_script = _script()  # now: the file may be changed while the job runs


def _own_program() -> dict[str, str]:
    """The versions that should be the same on all ranks, by name."""
    versions = {
        name: str(sys.modules[name].__version__)
        for name in ("horo", "torch")
        if hasattr(sys.modules.get(name), "__version__")
    }
    return {**versions, **_own_script}


def describe_differences(own: dict[str, str], others: dict[str, str]) -> str:
    """"torch 2.4.0 instead of 2.3.1", ...; empty: there is none."""
    names = [name for name in {**own, **others} if own.get(name) != others.get(name)]
    return ", ".join(
        f"{name} {own.get(name, 'not loaded')} instead of {others.get(name, 'not loaded')}" for name in names
    )


def tell_differences() -> None:
    """In a generation with new ranks, each one that runs another program than rank 0 says so on
    standard error, by what it has and what rank 0 has. All ranks call it."""
    if not generation.is_elastic() or not _job.is_initialized() or _job.size() == 1:
        return
    if generation.survivors() == _job.size():
        return
    own: dict[str, Any] = _own_program()
    digest = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).digest()
    if len(set(gather(digest, "elastic.program"))) == 1:
        return
    first = gather_objects(own, WORLD, "elastic.programs")[0]
    differences = describe_differences(own, first)
    if differences:
        print(
            f"horo: warning: rank {_job.rank()} runs another program than rank 0: {differences}; "
            "their results may differ",
            file=sys.stderr,
            flush=True,
        )
