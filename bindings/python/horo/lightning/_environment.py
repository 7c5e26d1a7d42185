# SPDX-License-Identifier: Apache-2.0
"""The ranks of `horo run` as a cluster environment of Lightning."""

from __future__ import annotations

import os
from typing import Any


def is_started_by_horo() -> bool:
    """Whether `horo run` has started this process as a rank."""
    return bool(os.environ.get("HORO_RANK")) and bool(os.environ.get("HORO_SIZE"))


def make_environment(base: Any):
    """A subclass of Lightning's ClusterEnvironment."""

    class HoroEnvironment(base):
        """Places and sizes come from the launcher; whatever the Trainer wants to set is ignored."""

        creates_processes_externally = True

        @staticmethod
        def detect():
            return is_started_by_horo()

        @property
        def main_address(self):
            return os.environ["MASTER_ADDR"]

        @property
        def main_port(self):
            return int(os.environ["MASTER_PORT"])

        def world_size(self):
            return int(os.environ["HORO_SIZE"])

        def set_world_size(self, size):
            pass

        def global_rank(self):
            return int(os.environ["HORO_RANK"])

        def set_global_rank(self, rank):
            pass

        def local_rank(self):
            return int(os.environ["HORO_LOCAL_RANK"])

        def node_rank(self):
            return int(os.environ["HORO_CROSS_RANK"])

    return HoroEnvironment
