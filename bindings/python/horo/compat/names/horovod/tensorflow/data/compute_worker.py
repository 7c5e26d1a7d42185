# SPDX-License-Identifier: Apache-2.0
"""horo.tensorflow.data.compute_worker under Horovod's name."""

from horo.tensorflow.data.compute_worker import _parse, compute_worker_fn, main

if __name__ == "__main__":
    given = _parse()
    main(given.dispatchers, given.dispatcher_side, given.configfile, given.timeout, given.force)
