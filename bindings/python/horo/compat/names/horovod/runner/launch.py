# SPDX-License-Identifier: Apache-2.0
"""The command `horovodrun`, for programs that call it from Python."""

import subprocess
import sys

from horo._runner.run import _program


def run_commandline():
    """Runs `horo run --horovod` with the arguments of this process, and exits as it does."""
    sys.exit(subprocess.call([_program(), "run", "--horovod", *sys.argv[1:]]))


def check_build(verbose=False):
    """Prints what the installed Horo can do, as `horo check-build` does, and exits."""
    del verbose
    sys.exit(subprocess.call([_program(), "check-build"]))


if __name__ == "__main__":
    run_commandline()
