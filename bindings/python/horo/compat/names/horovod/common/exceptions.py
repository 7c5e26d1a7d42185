# SPDX-License-Identifier: Apache-2.0
"""Horo's failures under Horovod's name."""

from horo.elastic import HostsUpdatedInterrupt
from horo.errors import HoroError as HorovodInternalError


class HorovodVersionMismatchError(ImportError):
    """Never raised: Horo is not built for one version of a framework."""
