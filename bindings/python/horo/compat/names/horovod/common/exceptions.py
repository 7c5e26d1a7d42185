# SPDX-License-Identifier: Apache-2.0
"""Horo's failures under Horovod's name."""

from horo.errors import HoroError as HorovodInternalError
