# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of devices: where they are, and what of DLPack names them."""
