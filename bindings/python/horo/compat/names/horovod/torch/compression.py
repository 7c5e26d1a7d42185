# SPDX-License-Identifier: Apache-2.0
"""What Horovod has under this name, of horo.torch."""

from horo.torch import Compression
from horo.torch._compression import Compressor

NoneCompressor = Compression.none
FP16Compressor = Compression.fp16
