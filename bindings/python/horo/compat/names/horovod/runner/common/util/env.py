# SPDX-License-Identifier: Apache-2.0
"""The environment of ranks."""

import re

from horo._life import _told_place

IGNORE_REGEXES = {"BASH_FUNC_.*", "OLDPWD", ".*_SECRET_KEY"}


def is_exportable(v):
    """Whether a variable of this name is for ranks on other hosts, too."""
    return not any(re.match(pattern, v) for pattern in IGNORE_REGEXES)


def get_env_rank_and_size():
    """The rank and the number of ranks that a launcher has told this process; (0, 1) without a launcher."""
    rank, size = _told_place()
    return (0, 1) if rank is None or size is None else (rank, size)
