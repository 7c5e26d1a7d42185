# SPDX-License-Identifier: Apache-2.0
"""Uses the module gloo in processes in which torch uses its own Gloo, each before, between and after the other.

usage: beside_torch.py LIBRARY
"""

import ctypes
import multiprocessing
import sys
import tempfile

SIZE = 2
COUNT = 1_000_003


def run(rank, library, folder):
    import torch
    import torch.distributed as dist

    ours = ctypes.CDLL(library)
    ours.horo_test_gloo_sum.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64]
    dist.init_process_group("gloo", init_method=f"file://{folder}/torch", rank=rank, world_size=SIZE)

    def torch_sum():
        tensor = torch.full((COUNT,), float(rank + 1))
        dist.all_reduce(tensor)
        assert bool((tensor == 3).all()), tensor

    torch_sum()
    tensor = torch.full((COUNT,), float(rank + 10))
    work = dist.all_reduce(torch.ones(COUNT), async_op=True)
    assert ours.horo_test_gloo_sum(rank, SIZE, folder.encode(), tensor.data_ptr(), COUNT) == 0
    assert bool((tensor == 21).all()), tensor
    work.wait()
    torch_sum()
    dist.destroy_process_group()


def main(library):
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=run, args=(rank, library, folder)) for rank in range(SIZE)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        return max(abs(rank.exitcode) for rank in ranks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
