# SPDX-License-Identifier: Apache-2.0
"""Runs the check_* functions of a file as one rank of a job, in order, and reports each.

usage: checks.py FILE REPORT_DIRECTORY

One job for many checks, since importing torch takes seconds. REPORT_DIRECTORY/<rank>.json lists the
checks that passed. The first failure ends the rank and so the job, because its peers would wait for ever.
"""

import importlib.util
import inspect
import json
import os
import sys
import traceback


def check_names(path):
    """Names of the check_* functions of a file in order, without importing it."""
    with open(path) as file:
        lines = file.read().splitlines()
    return [line[4 : line.index("(")] for line in lines if line.startswith("def check_")]


def _load(path):
    spec = importlib.util.spec_from_file_location("checks_under_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(path, directory):
    module = _load(path)
    horo = module.horo
    horo.init()
    passed = []
    report = os.path.join(directory, f"{horo.rank()}.json")
    for name in check_names(path):
        function = getattr(module, name)
        assert not inspect.signature(function).parameters, name
        try:
            function()
            horo.barrier()
        except BaseException:
            traceback.print_exc()
            print(f"rank {horo.rank()}: {name} failed", file=sys.stderr, flush=True)
            os._exit(1)
        passed.append(name)
        with open(report, "w") as file:
            json.dump(passed, file)
    horo.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
