# SPDX-License-Identifier: Apache-2.0
"""Horo's failures under Horovod's name."""

from horo.errors import HoroError as HorovodInternalError


class HostsUpdatedInterrupt(RuntimeError):
    """Never raised: Horo has no elastic jobs."""


class HorovodVersionMismatchError(ImportError):
    """Never raised: Horo is not built for one version of a framework."""
