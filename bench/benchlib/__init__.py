# SPDX-License-Identifier: Apache-2.0
"""What the scripts of bench/ share. Standard library only, Python 3.9 or newer."""
