# SPDX-License-Identifier: Apache-2.0
"""The names of horo.elastic that Horovod has in this module."""

from horo.elastic import ObjectState, State, run_fn
from horovod.runner.elastic.worker import WorkerNotificationManager

notification_manager = WorkerNotificationManager()
