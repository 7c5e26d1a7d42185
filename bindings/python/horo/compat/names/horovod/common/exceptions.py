# SPDX-License-Identifier: Apache-2.0
"""Horo's failures under Horovod's name."""

from horo.errors import HoroError as HorovodInternalError


class HostsUpdatedInterrupt(RuntimeError):
    """Nobody raises it: there are no elastic jobs."""


class HorovodVersionMismatchError(ImportError):
    """Nobody raises it: nothing is built for one version of a framework."""
