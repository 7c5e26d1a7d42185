# SPDX-License-Identifier: Apache-2.0
"""Starts N copies of a command with the variables that torch.distributed reads:
spawner.py N command ...  Ends with the largest exit code. torchrun itself checks its workers only every 5 s."""

import os
import socket
import subprocess
import sys


def main():
    count = int(sys.argv[1])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = []
    for rank in range(count):
        env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(port))
        processes.append(subprocess.Popen(sys.argv[2:], env=env))
    return max(abs(process.wait()) for process in processes)


if __name__ == "__main__":
    sys.exit(main())
