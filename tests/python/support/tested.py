# SPDX-License-Identifier: Apache-2.0
"""Notes which version of a framework passed a test file, for the table of tested versions.

The name of a test file says which framework it tests: test_torch_*.py, test_keras_*.py and so on. When
all tests of a file have passed, or some were skipped and the rest passed, a row is written into the folder
that HORO_TESTED names. A failure is written too, so that a version that fails is not listed.
scripts/frameworks reads the rows.
"""

import datetime
import json
import os
import platform
import re
import subprocess
import sys
from importlib import metadata

# Distributions that have the framework.
FRAMEWORKS = {
    "torch": ("torch",),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
    "keras": ("keras",),
    "jax": ("jax",),
    "lightning": ("lightning", "pytorch-lightning"),
    "mxnet": ("mxnet",),
    "numpy": ("numpy",),
}


def framework_of(path):
    """The framework that a test file tests; None for other files."""
    found = re.match(r"test_([a-z]+)(_|\.)", os.path.basename(path))
    return found.group(1) if found and found.group(1) in FRAMEWORKS else None


def version_of(framework):
    """The installed version; None if it is not installed."""
    found = None
    for distribution in FRAMEWORKS[framework]:
        try:
            found = found or metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    if found is None or re.search("[a-z]", found.partition("+")[0]):
        return _of_debian(framework) or found  # Debian's torch 1.13.1 calls itself 1.13.0a0
    return found


def _of_debian(framework):
    """The version of Debian's package, without Debian's own part; None if this Python is not Debian's."""
    if not os.path.realpath(sys.executable).startswith("/usr/bin/"):
        return None
    command = ["dpkg-query", "-W", "-f", "${source:Upstream-Version}", f"python3-{framework}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() or None


def write(folder, path, passed, failed):
    """Writes the row of one test file. Nothing is written when no test ran."""
    framework = framework_of(path)
    version = version_of(framework) if framework and (passed or failed) else None
    if version is None:
        return
    release = version.partition("+")[0]  # without the kind of build, such as +cpu or +dfsg
    row = {
        "framework": framework,
        "version": release,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "file": os.path.basename(path),
        "passed": passed,
        "failed": failed,
        "day": datetime.date.today().isoformat(),
    }
    os.makedirs(folder, exist_ok=True)
    name = f"{framework}-{release}-{row['python']}-{row['file']}"
    ways = "-ctypes" if os.environ.get("HORO_CTYPES", "0") not in ("", "0") else ""
    with open(os.path.join(folder, f"{name}{ways}.json"), "w") as file:
        json.dump(row, file, indent=1)
