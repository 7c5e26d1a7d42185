# SPDX-License-Identifier: Apache-2.0
"""Modules of Horovod's launcher that programs import. `horo run` itself decides about the members of
an elastic job."""
