# SPDX-License-Identifier: Apache-2.0
"""horo.run under Horovod's name."""

from horo import run
