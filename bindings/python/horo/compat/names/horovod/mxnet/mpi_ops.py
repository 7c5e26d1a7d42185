# SPDX-License-Identifier: Apache-2.0
"""The names of horo.mxnet that Horovod has in this module."""

from horo.mxnet import *
