# SPDX-License-Identifier: Apache-2.0
"""Which folder may include which, no cycle among folders, and the one home folder of each third-party library.

usage: layers.py ROOT
"""

import os
import re

import tree

# The top folders that a top folder may include besides itself. A top folder without a row may include anything.
ALLOWED = {
    "base": [],
    "discovery": ["base"],
    "timeline": ["base"],
    "autotune": ["base"],
    "completions": ["base"],
    "launcher": ["discovery", "timeline", "base"],
    "runtime": ["timeline", "autotune", "base"],
    "bindings": ["base", "runtime"],
    "examples": ["runtime"],
    "apps": ["base", "discovery", "timeline", "autotune", "completions", "launcher", "runtime"],
}

# Top folder -> its folders -> those of its folders that each may include besides itself; "" is the top folder's own files. A
# folder may include only what stands above it in its table. A folder that is missing in its table is a fault: its place must
# be decided. The public headers in runtime/include may be included everywhere.
INSIDE = {
    "base": {
        "cpu": [],
        "fmt": [],
        "text": [],
        "net": [],
        "": ["text"],
        "codec": [""],
        "elastic": ["", "codec"],
        "tree": [""],
        "knobs": [""],
        "cli": ["", "knobs"],
        "loop": [""],
        "process": [""],
        "kv": ["", "codec"],
        "kv/server": ["", "kv", "loop"],
    },
    "discovery": {
        "": [],
        "sources": [""],
        "search": ["", "sources"],
        "topology": [""],
        "nvml": [""],
    },
    "timeline": {
        "record": [],
        "chrome": ["record"],
        "live": ["record"],
        "analysis": [],
        "input": ["analysis", "chrome", "record"],
        "view": ["analysis", "chrome", "live", "record"],
        "serve": [],
    },
    "launcher": {
        "": [],
        "process": [""],
        "binding": [],
        "protocol": [""],
        "ranks": ["", "binding", "process", "protocol"],
        "agent": ["", "process", "protocol", "ranks"],
        "starters/link": ["", "protocol"],
        "starters/local": ["", "process", "starters/link"],
        "starters/program": ["process", "protocol", "starters/link"],
        "starters/ssh": ["process", "starters/link"],
        "starters/tree": ["", "protocol", "starters/link", "starters/program", "starters/ssh"],
        "starters/dial_in": ["", "protocol", "ranks"],
        "output": [""],
        "job": ["", "output", "protocol"],
        "elastic": ["", "job", "output", "protocol"],
        "elastic/driver": ["", "elastic", "job", "output", "protocol"],
        "mpi": ["", "job", "output", "process", "starters/dial_in", "starters/local"],
        "plan": ["", "binding", "mpi", "output", "protocol", "starters/dial_in", "starters/link", "starters/local",
                 "starters/program", "starters/ssh", "starters/tree"],
        "run": ["", "elastic", "elastic/driver", "job", "mpi", "output", "plan", "process", "protocol", "starters/link", "starters/local", "starters/program",
                "starters/ssh", "starters/tree"],
    },
    "runtime": {
        "tensor": [],
        "kernels": ["tensor"],
        "host": ["tensor"],
        "board/directory": ["host", "tensor"],
        "board": ["board/directory", "host", "tensor"],
        "device": ["tensor"],
        "bucket": ["device", "kernels", "host", "tensor"],
        "bootstrap/identity": [],
        "bootstrap/meeting": [],
        "bootstrap/local": ["bootstrap/meeting"],
        "bootstrap/store": ["bootstrap/identity", "bootstrap/meeting"],
        "bootstrap/elastic": ["bootstrap/meeting", "bootstrap/store"],
        "bootstrap": ["bootstrap/elastic", "bootstrap/identity", "bootstrap/local", "bootstrap/meeting", "bootstrap/store"],
        "backends": ["bucket", "device"],
        "backends/shm": ["bucket", "host", "kernels", "tensor"],
        "backends/adasum": ["backends/shm", "bucket", "kernels", "tensor"],
        "backends/flat": ["backends", "bucket", "kernels", "tensor"],
        "backends/hierarchical": ["backends", "backends/flat", "bucket", "tensor"],
        "backends/tcp": ["backends", "backends/flat", "bucket", "tensor"],
        "backends/gloo": ["backends", "backends/flat", "bucket", "tensor"],
        "backends/mpi": ["backends", "backends/flat", "bucket", "tensor"],
        "backends/device/staging": ["bucket", "device", "tensor"],
        "backends/device": ["backends", "backends/adasum", "backends/device/staging", "backends/hierarchical", "bucket", "device", "tensor"],
        "device/kernels": [],
        "device/driver": ["device", "device/kernels", "tensor"],
        "device/cuda": ["device", "device/driver", "backends"],
        "backends/ipc": ["backends", "bucket", "device", "device/driver", "tensor"],
        "backends/nccl": ["backends", "bucket", "device", "device/cuda", "tensor"],
        "engine/operations": ["board", "bucket", "device", "host", "tensor"],
        "engine/agreement": ["board", "engine/operations", "tensor"],
        "engine": ["backends/adasum", "backends/shm", "board", "bucket", "device", "engine/agreement", "engine/operations", "host", "kernels", "tensor"],
        "tuning/memory": ["tensor"],
        "tuning": ["engine", "engine/agreement", "tensor", "tuning/memory"],
        "tree/frames": ["tensor"],
        "tree/agreement": ["board", "host", "tensor", "tree/frames"],
        "tree/leader": ["tree/agreement", "tree/frames"],
        "tree/connections": ["bootstrap/meeting", "tree/frames", "tree/leader"],
        "sets": ["backends", "backends/device", "backends/hierarchical", "backends/shm", "board", "bootstrap/meeting", "bucket", "device", "engine",
                 "engine/operations", "host", "tree/agreement", "tree/connections"],
        "stalls": ["board", "engine/operations", "host", "sets", "tree/agreement"],
        "session": ["backends/device", "board", "bootstrap/meeting", "device", "engine/operations", "host", "sets", "stalls", "tensor", "tuning"],
        "capi": ["backends", "backends/device", "backends/ipc", "backends/nccl", "bootstrap", "device", "device/driver", "engine/operations", "host", "session", "tensor", "tuning"],
        "simulator": ["tensor", "tree/agreement", "tree/leader"],
        "simulator/cluster": ["backends", "backends/flat", "backends/hierarchical", "backends/tcp", "bootstrap/store", "bucket",
                              "sets", "simulator", "tensor", "tree/leader"],
    },
}

# First part of an include in <> -> folders that may use it. Asio's executor is lent: only to .cpp files there.
HOMES = [
    ("boost/process", ["launcher/process"], []),
    ("boost/asio", ["base/loop"],
     ["launcher/process"]),
    ("boost/", ["base/loop", "launcher/process"], []),
    ("CLI/", ["apps"], []),
    ("yaml-cpp/", ["apps/common"], []),
    ("sodium", ["base/kv"], []),
    ("gloo/", ["runtime/backends/gloo"], []),
    ("zlib.h", ["timeline/input", "examples"], []),
    ("hwloc", ["discovery/topology"], []),
    ("libssh/", ["launcher/starters/ssh"], []),
    ("Eigen/", ["autotune"], []),
    ("LBFGS", ["autotune"], []),
    ("mpi.h", ["runtime/backends/mpi"], []),
    ("nccl.h", ["runtime/backends/nccl"], []),
    ("cuda", ["runtime/device/kernels"], []),
    ("immintrin.h", ["runtime/kernels"], []),
    ("Python.h", ["bindings/python/fastpath"], []),
    ("catch2/", [], []),
]

# Tests and benchmarks may include anything, because they compare Horo with third parties.
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


def _only(folders):
    return "only " + ", ".join(folders) if folders else "no other folder"


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


def _inside_fault(path, name):
    """The fault of an include between two folders of one top folder, or None."""
    top = path.split("/")[0]
    rooms = INSIDE.get(top)
    if rooms is None or not name.startswith(top + "/") or path.startswith("runtime/include/"):
        return None
    room = os.path.dirname(path)[len(top) + 1:]
    other = os.path.dirname(name)[len(top) + 1:]
    own = os.path.dirname(path)
    if room not in rooms:
        return f"{own} has no place in the table of {top}'s folders in tests/lint/layers.py"
    if other == room or other in rooms[room]:
        return None
    may = _only([f"{top}/{folder}".rstrip("/") for folder in rooms[room]])
    return f"{own} includes {os.path.dirname(name)} ({name}), but may include {may} of {top}"


def _groups(graph):
    """Sets of folders that reach each other in `graph` (folder -> folders it includes), each sorted."""
    def reached(start):
        found, left = set(), [start]
        while left:
            new = set(graph.get(left.pop(), ())) - found
            found |= new
            left += new
        return found

    reach = {folder: reached(folder) for folder in graph}
    return sorted({tuple(sorted(other for other in reach[folder] if folder in reach.get(other, ())))
                   for folder in graph if folder in reach[folder]})


def _cycles(includes):
    """A fault for each group of folders that include each other; `includes` is (path, line, folder of the included file)."""
    graph = {}
    for path, _, other in includes:
        if os.path.dirname(path) != other:
            graph.setdefault(os.path.dirname(path), set()).add(other)
    for group in _groups(graph):
        example = "; ".join(f"{path}:{number} includes {other}" for path, number, other in _examples(includes, group))
        yield f"folders include each other: {', '.join(group)} ({example})"


def _examples(includes, group):
    """One include for each pair of folders in `group`."""
    seen = set()
    for path, number, other in includes:
        pair = (os.path.dirname(path), other)
        if pair[0] != other and pair[0] in group and other in group and pair not in seen:
            seen.add(pair)
            yield path, number, other


def check(root):
    faults = []
    includes = []
    for path in tree.files(root):
        top = path.split("/")[0]
        if not path.endswith(_SOURCE) or top in EXEMPT:
            continue
        for number, line in enumerate(tree.lines(root, path), 1):
            match = _INCLUDE.match(line)
            if not match:
                continue
            quote, name = match.groups()
            if quote == '"':
                includes.append((path, number, os.path.dirname(name)))
            layer = _layer(root, name)
            if quote == '"' and layer is None:
                faults.append(f'{path}:{number}: "{name}" is not a path from the root')
            elif layer and layer != top and layer not in ALLOWED.get(top, [layer]):
                may = _only(ALLOWED[top])
                faults.append(f"{path}:{number}: {top} includes {layer} ({name}), but may include {may}")
            else:
                fault = _third_party(path, name) if layer is None else _inside_fault(path, name)
                if fault:
                    faults.append(f"{path}:{number}: {fault}")
    return faults + list(_cycles(includes))


if __name__ == "__main__":
    tree.main(check)
