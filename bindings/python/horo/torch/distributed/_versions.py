# SPDX-License-Identifier: Apache-2.0
"""Where the versions of torch differ."""

from __future__ import annotations

import inspect

import torch

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])

# C++ code of some versions holds the C++ part of a Work written in Python, but not its Python part. 2.6 and older ones
# do, 2.13 does not.
LOSES_WORKS = VERSION < (2, 13)

def register(backend_class, name, creator, devices):
    """Backend.register_backend() in any version."""
    if "devices" in inspect.signature(backend_class.register_backend).parameters:
        backend_class.register_backend(name, creator, extended_api=True, devices=devices)
    else:
        backend_class.register_backend(name, creator, extended_api=True)


def hide_from_compiler(*classes):
    """torch.compile runs the methods of these classes as they are. C++ code, such as
    DistributedDataParallel's, calls them while the compiler looks at each Python function that runs."""
    try:
        from torch._C._dynamo import eval_frame

        skip = eval_frame._FrameAction.SKIP
        strategy = eval_frame._FrameExecStrategy(skip, skip)
    except (ImportError, AttributeError):  # an older version, without such a mark
        return
    for one in classes:
        for member in vars(one).values():
            function = getattr(member, "fget", member)
            if hasattr(function, "__code__"):
                eval_frame.set_code_exec_strategy(function.__code__, strategy)
