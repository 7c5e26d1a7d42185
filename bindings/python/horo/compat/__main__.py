# SPDX-License-Identifier: Apache-2.0
"""python3 -m horo.compat [-m MODULE | SCRIPT] [ARGUMENT...]: runs a program written for Horovod."""

import os
import runpy
import sys

from horo import compat


def main(words):
    module = words[:1] == ["-m"]
    words = words[1:] if module else words
    if not words or words[0] in ("-h", "--help"):
        sys.exit(f"usage: {__doc__}")
    compat.install()
    sys.argv = words
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    # What -m put there is the folder that we were started in; a script has its own.
    sys.path.pop(0)
    main(sys.argv[1:])
