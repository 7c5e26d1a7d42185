# SPDX-License-Identifier: Apache-2.0
"""horo.run(): the caller, the ranks that it starts, and the connections between them."""
