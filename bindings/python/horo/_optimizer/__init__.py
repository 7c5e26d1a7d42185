# SPDX-License-Identifier: Apache-2.0
"""Optimizers over ranks, for any framework: which gradients there are and when they are reduced."""
