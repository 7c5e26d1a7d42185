# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs: ranks that come and go while the others keep their processes and their memory."""
