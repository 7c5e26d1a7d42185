# SPDX-License-Identifier: Apache-2.0
"""How a rank learns that hosts have changed."""


class HostUpdateResult:
    """The flags of a change: hosts have gone, have come, or both."""

    no_update = 0
    removed = 1
    added = 2
    mixed = removed | added


class WorkerNotificationManager:
    """Passes announcements on to the states that are registered. Ranks of Horo see the launcher's
    announcements without it."""

    def __init__(self):
        self._listeners = []

    def init(self, rendezvous_addr=None, rendezvous_port=None, nic=None, hostname=None, local_rank=None):
        """Does nothing: there is no service to start."""

    def register_listener(self, listener):
        """Calls listener.on_hosts_updated() at each announcement."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def remove_listener(self, listener):
        """Ends register_listener()."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def handle_hosts_updated(self, timestamp, update_res):
        """Announces a change to all listeners."""
        for listener in list(self._listeners):
            listener.on_hosts_updated(timestamp, update_res)
