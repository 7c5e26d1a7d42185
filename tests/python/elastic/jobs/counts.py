# SPDX-License-Identifier: Apache-2.0
"""An elastic program without an optimizer: after a loss it goes back to its last commit.

usage: counts.py COUNT WORKER AT      (worker WORKER dies when it has counted to AT)
"""

import os
import signal
import sys

import numpy

import horo.elastic
import horo.numpy

COUNT, WORKER, AT = sys.argv[1], sys.argv[2], int(sys.argv[3])


@horo.elastic.run
def count(state):
    while state.count < int(COUNT):
        if os.environ["HORO_WORKER"] == WORKER and state.count == AT:
            os.kill(os.getpid(), signal.SIGKILL)
        total = horo.numpy.allreduce(numpy.ones(3), op=horo.numpy.Sum, name="total")
        assert total.tolist() == [horo.numpy.size()] * 3
        state.count += 1
        state.rows.append(state.count)
        if state.count % 3 == 0:
            state.commit()
    return state.rows


horo.numpy.init()
state = horo.elastic.ObjectState(count=0, rows=[])
assert count(state) == list(range(1, int(COUNT) + 1)), state.rows
print("worker", os.environ["HORO_WORKER"], "counted to", state.count, flush=True)
