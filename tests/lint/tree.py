# SPDX-License-Identifier: Apache-2.0
"""Shared by the lint checks: the files of the tree, and the report of faults."""

import os
import subprocess
import sys

_SKIPPED = {"build", ".git", ".venv", "dist", "__pycache__"}


def files(root):
    """Paths, relative to `root`, of all files that are or would be committed, sorted."""
    if os.path.exists(os.path.join(root, ".git")):
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True, text=True).stdout
        found = set(filter(None, listed.split("\0")))
    else:
        found = set()
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in _SKIPPED]
            found.update(os.path.relpath(os.path.join(folder, name), root) for name in names)
    # A deleted file stays in the list until the deletion is committed.
    return sorted(path for path in found if os.path.isfile(os.path.join(root, path)))


def lines(root, path):
    """The file's lines without their ends; empty for a file that is not text."""
    with open(os.path.join(root, path), "rb") as file:
        content = file.read()
    if b"\0" in content:
        return []
    return content.decode("utf-8", "replace").split("\n")[:-1] if content else []


def main(check):
    """Runs `check(root) -> faults`, prints them and exits with 1 if there are any."""
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".")
    faults = check(root)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} fault(s)")
    sys.exit(1 if faults else 0)
