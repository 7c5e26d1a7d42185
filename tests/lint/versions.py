# SPDX-License-Identifier: Apache-2.0
"""The README's table of tested versions is the one that scripts/frameworks makes from docs/tested-versions.json.

usage: versions.py ROOT
"""

import importlib.machinery
import importlib.util
import json
import os
import sys

import tree

_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_FIELDS = {"framework": str, "version": str, "python": str, "tests": int, "day": str}


def _load(name, path):
    loader = importlib.machinery.SourceFileLoader(name, path)
    spec = importlib.util.spec_from_loader(name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def check(root):
    sys.dont_write_bytecode = True
    frameworks = _load("frameworks", os.path.join(_OWN, "scripts", "frameworks"))
    tested = _load("tested", os.path.join(_OWN, "tests", "python", "support", "tested.py"))
    faults = []
    if set(frameworks.TITLES) != set(tested.FRAMEWORKS):
        faults.append("scripts/frameworks and tests/python/support/tested.py name different frameworks")
    with open(os.path.join(root, "docs", "tested-versions.json")) as file:
        rows = json.load(file)
    for row in rows:
        if {key: type(value) for key, value in row.items()} != _FIELDS or row["framework"] not in frameworks.TITLES:
            return faults + [f"docs/tested-versions.json: not a row of scripts/frameworks: {row}"]
        if row["tests"] < 1:
            faults.append(f"docs/tested-versions.json: no test passed: {row}")
    with open(os.path.join(root, "README.md")) as file:
        readme = file.read()
    if readme.count(frameworks.BEGIN) != 1 or readme != frameworks.with_table(readme, rows):
        faults.append("README.md: the table of tested versions is stale: run scripts/frameworks table --write")
    return faults


if __name__ == "__main__":
    tree.main(check)
