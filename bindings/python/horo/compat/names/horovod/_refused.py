# SPDX-License-Identifier: Apache-2.0
"""Modules of Horovod that Horo does not have, and what to use instead."""

_START = "horovod.run() and the command `horo run --horovod` start jobs"
_ELASTIC = "`horo run --min-np` and horovod.run(min_num_proc=...) start elastic jobs"

# The longest name that is the module's, or of a package around it, says what to use.
_INSTEAD = {
    "horovod.runner": _START,
    "horovod.runner.elastic": _ELASTIC,
    "horovod.runner.common.service": "processes of a job talk by horovod.torch.broadcast_object() and allgather_object()",
    "horovod.runner.common.util.safe_shell_exec": "the module subprocess starts commands",
    "horovod.runner.common.util.tiny_shell_exec": "the module subprocess starts commands",
    "horovod.runner.common.util.network": "the modules socket and socketserver are for other connections",
    "horovod.runner.common.util.config_parser": "`horo run --config-file` reads files of settings",
    "horovod.runner.util.lsf": "`horo run` finds the hosts of an LSF job, and `horo discover` prints them",
    "horovod.runner.util.threads": "the module concurrent.futures runs functions in threads",
    "horovod.runner.mpi_run": "`horo run --mpi` and horovod.run(use_mpi=True) start jobs by mpirun",
    "horovod.runner.js_run": "`horo run --jsrun` starts jobs by jsrun",
}


def instead_of(name):
    """A sentence's part on what to use instead of a module; None if there is nothing like it."""
    while name:
        if name in _INSTEAD:
            return _INSTEAD[name]
        name = name.rpartition(".")[0]
    return None
