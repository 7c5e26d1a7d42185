# SPDX-License-Identifier: Apache-2.0
"""Who may include whom, and the one home folder of each third-party library.

usage: layers.py ROOT
"""

import os
import re

import tree

# What a folder may include besides itself. Folders that are not named may include anything.
ALLOWED = {
    "base": [],
    "discovery": ["base"],
    "timeline": ["base"],
    "autotune": ["base"],
    "completions": ["base"],
    "launcher": ["discovery", "timeline", "base"],
    "runtime": ["timeline", "autotune", "base"],
    "bindings": ["runtime"],
    "examples": ["runtime"],
    "apps": ["base", "discovery", "timeline", "autotune", "completions", "launcher", "runtime"],
}

# First part of an include in <> -> folders that may use it. Asio's executor is lent: only to .cpp files there.
HOMES = [
    ("boost/process", ["launcher/process"], []),
    ("boost/asio", ["base/loop"],
     ["launcher/process", "base/kv/server", "launcher/agent", "launcher/starters/ssh", "runtime/control/tcp"]),
    ("boost/", ["base/loop", "launcher/process"], ["base/kv/server", "launcher/agent"]),
    ("CLI/", ["apps"], []),
    ("yaml-cpp/", ["apps/common"], []),
    ("sodium", ["base/kv"], []),
    ("gloo/", ["runtime/backends/gloo"], []),
    ("zlib.h", ["apps/timeline_view", "examples"], []),
    ("hwloc", ["discovery/topology"], []),
    ("libssh/", ["launcher/starters/ssh"], []),
    ("mpi.h", ["runtime/backends/mpi"], []),
    ("nccl.h", ["runtime/backends/nccl"], []),
    ("cuda", ["runtime/device/cuda"], []),
    ("immintrin.h", ["runtime/backends/shm"], []),
    ("catch2/", [], []),
]

# Tests and benchmarks may look at everything: they compare with the third parties.
EXEMPT = ("tests", "bench")

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
_SOURCE = (".hpp", ".h", ".cpp", ".c", ".cu")


def _layer(root, name):
    """Top folder that an include belongs to, or None for a system or third-party header."""
    if name.startswith("horo/"):
        return "runtime"
    top = name.split("/")[0]
    known = "/" in name and not top.startswith(".") and os.path.isdir(os.path.join(root, top))
    return top if known else None


def _third_party(path, name):
    for prefix, homes, lent in HOMES:
        if name.startswith(prefix):
            folder = os.path.dirname(path) + "/"
            at_home = any(folder.startswith(home + "/") for home in homes)
            borrowed = path.endswith(".cpp") and any(folder.startswith(home + "/") for home in lent)
            if at_home or borrowed:
                return None
            where = ", ".join(homes + [f"{home} (.cpp)" for home in lent]) or "tests"
            return f"<{name}> belongs to {where}"
    return None


def check(root):
    faults = []
    for path in tree.files(root):
        top = path.split("/")[0]
        if not path.endswith(_SOURCE) or top in EXEMPT:
            continue
        for number, line in enumerate(tree.lines(root, path), 1):
            match = _INCLUDE.match(line)
            if not match:
                continue
            quote, name = match.groups()
            layer = _layer(root, name)
            if quote == '"' and layer is None:
                faults.append(f'{path}:{number}: "{name}" is not a path from the root')
            elif layer and layer != top and layer not in ALLOWED.get(top, [layer]):
                may = ", ".join(ALLOWED[top]) or "nothing else"
                faults.append(f"{path}:{number}: {top} includes {layer} ({name}), but may include only {may}")
            elif layer is None:
                fault = _third_party(path, name)
                if fault:
                    faults.append(f"{path}:{number}: {fault}")
    return faults


if __name__ == "__main__":
    tree.main(check)
