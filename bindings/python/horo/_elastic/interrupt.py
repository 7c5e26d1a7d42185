# SPDX-License-Identifier: Apache-2.0
"""The exception by which a rank leaves its loop because the job's members are to change."""


class HostsUpdatedInterrupt(RuntimeError):
    """Hosts or workers have come, or are to go. check_host_updates() raises it on all ranks in the
    same call. `skip_sync`: nothing but the removal of ranks was announced."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the members of the job are to change")
        self.skip_sync = skip_sync
