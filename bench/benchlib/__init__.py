# SPDX-License-Identifier: Apache-2.0
"""Shared by the scripts of bench/. Standard library only, Python 3.9 or newer."""
