# SPDX-License-Identifier: Apache-2.0
import pytest

import job

pytest.importorskip("mxnet")

JOB = "mxnet_trainings"
RANKS = (2,)


def test_job(checked, ranks, check):
    checks = checked(JOB, ranks)
    if check == "clean_end":
        checks.require_clean_end()
    else:
        checks.require(check)


def test_programs_for_horovod():
    """hvd.DistributedTrainer and the modules that such programs import."""
    code = """
        from horo import compat
        compat.install()
        import horovod.mxnet as hvd
        import mxnet as mx
        from horovod.mxnet.compression import Compression
        from horovod.mxnet.mpi_ops import allreduce_
        assert allreduce_ is hvd.allreduce_ and Compression is hvd.Compression
        hvd.init()
        assert hvd.allreduce(mx.nd.ones(3), op=hvd.Sum).asnumpy().tolist() == [hvd.size()] * 3
        print("rank", hvd.rank(), "done")
    """
    done = job.run_code(2, code)
    assert done.code == 0 and "rank 0 done" in done.output and "rank 1 done" in done.output, done.output
