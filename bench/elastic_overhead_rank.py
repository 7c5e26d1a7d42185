# SPDX-License-Identifier: Apache-2.0
"""One rank of bench/elastic_overhead: takes a step of ResNet-50 whenever a line on the socket asks for one ("bare": without
commit()), and answers with the elapsed time and the processor time of this process."""

import argparse
import json
import socket
import sys
import time

import torch

from torch_training import BACKENDS, Training


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=sorted(BACKENDS))
    parser.add_argument("socket")
    parser.add_argument("image", type=int)
    parser.add_argument("batch", type=int)
    args = parser.parse_args()
    args.kept = False
    torch.set_num_threads(1)
    runtime = BACKENDS[args.backend]()
    training = Training(runtime, args, True)
    training.step()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(args.socket)
    stream = connection.makefile("rw", encoding="ascii")
    for line in stream:
        if line not in ("step\n", "bare\n"):
            break
        runtime.commits = line == "step\n"
        wall, cpu = time.perf_counter(), time.process_time()
        training.step()
        row = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        stream.write(json.dumps(row) + "\n")
        stream.flush()
    runtime.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
