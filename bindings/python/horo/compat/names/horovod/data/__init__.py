# SPDX-License-Identifier: Apache-2.0
"""horo.data under Horovod's name."""

from horo.data import AsyncDataLoaderMixin, BaseDataLoader
