# SPDX-License-Identifier: Apache-2.0
"""A function for horo.run() that loses a rank."""

import os
import signal


def trains(steps, worker):
    """The rank and the number of ranks at the end. Worker number `worker` dies in the first half."""
    import numpy

    import horo.elastic
    import horo.numpy

    horo.numpy.init()

    @horo.elastic.run
    def train(state):
        while state.step < steps:
            if state.step == steps // 2 and os.environ["HORO_WORKER"] == str(worker):
                os.kill(os.getpid(), signal.SIGKILL)
            horo.numpy.allreduce(numpy.ones(1), name="step")
            state.step += 1
            state.commit()
        return horo.numpy.rank(), horo.numpy.size(), state.step

    return train(horo.elastic.ObjectState(step=0))
