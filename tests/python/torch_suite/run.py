#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs torch's own tests of its backends, which its wheel carries, with gloo and with horo.

  run.py --ranks 3                           compares: which tests pass with gloo, and which of these with horo
  run.py --ranks 2 --backends horo -k send   only some tests, with one backend

horo runs under its own name, and as "as-gloo": torch.distributed is asked for gloo, as `horo run
--torch-backend horo` does it, so that tests for gloo alone run, too. The ranks are forked from this process,
which takes much less time than torch's own way. Exit code 1: fewer than --least percent pass. Needs the PyPI package expecttest."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.abspath(__file__)


def prepare(backend):
    """Makes the backend known to torch's tests."""
    from torch.testing._internal import common_distributed as common

    os.environ["BACKEND"] = "gloo" if backend == "as-gloo" else backend
    if backend == "gloo":
        return
    import horo.torch.distributed as ours

    if backend == "as-gloo":
        ours.replace_gloo()
    for feature in ("ddp", "subgroup"):
        common.DistTestCases.backend_feature[feature].add("horo")
    common.DistTestCases.skip_collective["sendrecv anysource"].add("horo")


class Keeper(unittest.TestResult):
    """Appends each result to a file, so that those before a crash stay."""

    def __init__(self, out):
        super().__init__()
        self._out = out

    def _note(self, test, result, text=""):
        row = {"test": test.id().split(".")[-1], "result": result, "text": text}
        with open(self._out, "a") as file:
            file.write(json.dumps(row) + "\n")

    def addSuccess(self, test):
        self._note(test, "passed")

    def addSkip(self, test, reason):
        self._note(test, "skipped", reason)

    def addFailure(self, test, error):
        self._note(test, "failed", self._exc_info_to_string(error, test))

    addError = addFailure


def one_backend(backend, pattern, out, limit):
    """Runs in a process of its own: the tests of one backend, whose results go to `out`."""
    prepare(backend)
    import torch.multiprocessing
    from torch.testing._internal import common_distributed as common
    from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

    common.get_timeout = lambda _id: limit
    fork = torch.multiprocessing.get_context("fork").Process

    class Suite(TestDistBackend, DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(fork)

    wanted = pattern.split(",")
    names = unittest.TestLoader().getTestCaseNames(Suite)
    chosen = [name for name in names if any(word in name for word in wanted)]
    unittest.TestSuite(Suite(name) for name in chosen).run(Keeper(out))


def results_of(backend, args):
    """name -> row."""
    with tempfile.TemporaryDirectory(prefix="horo-torch-suite-") as directory:
        out = os.path.join(directory, "results")
        environment = {
            **os.environ,
            "WORLD_SIZE": str(args.ranks),
            "TEMP_DIR": directory,
            "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1",
        }
        words = [sys.executable, HERE, "--only-backend", backend, "--out", out, "-k", args.k]
        log = open(args.log, "ab") if args.log else subprocess.DEVNULL
        subprocess.run([*words, "--limit", str(args.limit)], env=environment, stdout=log, stderr=log)
        if not os.path.exists(out):
            return {}
        with open(out) as file:
            return {row["test"]: row for row in map(json.loads, file)}


def compare(found, backend):
    """Prints what gloo passes and `backend` does not. Returns the share in percent."""
    good = [name for name, row in found["gloo"].items() if row["result"] == "passed"]
    rows = {name: found[backend].get(name, {"result": "did not run", "text": ""}) for name in good}
    applies = [name for name in good if rows[name]["result"] != "skipped"]
    passed = [name for name in applies if rows[name]["result"] == "passed"]
    for name in good:
        if rows[name]["result"] != "passed":
            reason = rows[name]["text"].strip().split("\n")
            print(f"  {backend}: {rows[name]['result']} {name}: {reason[-1][:200]}")
    share = 100 * len(passed) / max(1, len(applies))
    print(f"{backend}: {len(passed)} of {len(applies)} tests that gloo passes ({share:.1f} %)", end="")
    print(f"; {len(good) - len(applies)} more are for gloo's name alone")
    return share


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--backends", default="gloo,horo,as-gloo")
    parser.add_argument("-k", default="", help="only tests with one of these words, separated by commas, in their name")
    parser.add_argument("--least", type=float, default=98.0)
    parser.add_argument("--limit", type=int, default=60, help="seconds for one test (%(default)s)")
    parser.add_argument("--log", help="file for the output of the tests")
    parser.add_argument("--json", help="file for all results")
    parser.add_argument("--only-backend", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only_backend:
        return one_backend(args.only_backend, args.k, args.out, args.limit)
    found = {backend: results_of(backend, args) for backend in args.backends.split(",")}
    if args.json:
        with open(args.json, "w") as file:
            json.dump(found, file, indent=1)
    for backend, rows in found.items():
        counts = [row["result"] for row in rows.values()]
        print(backend, {kind: counts.count(kind) for kind in sorted(set(counts))})
    if "gloo" not in found:
        return 0
    shares = [compare(found, backend) for backend in found if backend != "gloo"]
    return int(min(shares, default=100.0) < args.least)


if __name__ == "__main__":
    sys.exit(main())
