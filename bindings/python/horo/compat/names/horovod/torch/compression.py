# SPDX-License-Identifier: Apache-2.0
"""The names of horo.torch that Horovod has in this module."""

from horo.torch import Compression
from horo.torch._compression import Compressor

NoneCompressor = Compression.none
FP16Compressor = Compression.fp16
