# SPDX-License-Identifier: Apache-2.0
"""Horo's process sets under Horovod's name."""

from horo._sets import (
    ProcessSet,
    add_process_set,
    get_process_set_ids_and_ranks,
    global_process_set,
    remove_process_set,
)
