# SPDX-License-Identifier: Apache-2.0
"""python3 -m horo.compat [-m MODULE | SCRIPT] [ARGUMENT...]: runs a program written for Horovod."""

import importlib.util
import os
import runpy
import sys

from horo import compat

# With -P, Python does not put the program's folder first in sys.path; neither does this program.
SAFE_PATH = getattr(sys.flags, "safe_path", sys.flags.isolated)


def main(words):
    module = words[:1] == ["-m"]
    words = words[1:] if module else words
    if not words or words[0] in ("-h", "--help"):
        sys.exit(f"usage: {__doc__}")
    compat.install()
    sys.argv = words
    if module:
        if not SAFE_PATH:
            sys.path.insert(0, os.getcwd())
        if not _found(words[0]):
            sys.exit(f"python3 -m horo.compat: no module named {words[0]!r}")
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        return
    if not os.path.exists(words[0]):  # Python exits with 2, too
        print(f"python3 -m horo.compat: no file {words[0]!r} in {os.getcwd()}", file=sys.stderr)
        sys.exit(2)
    if not SAFE_PATH:
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
    runpy.run_path(words[0], run_name="__main__")


def _found(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its package does not exist
        return False


if __name__ == "__main__":
    # -m has put the current folder first in sys.path; a script expects its own folder there.
    if not SAFE_PATH:
        sys.path.pop(0)
    main(sys.argv[1:])
