# SPDX-License-Identifier: Apache-2.0
"""Ways to find hosts, for programs that ask for them by themselves. `horo run
--host-discovery-script` has its own."""

import subprocess

TIME_OUT_S = 60


class HostDiscovery:
    """A way to find hosts."""

    def find_available_hosts_and_slots(self):
        """A dict from the hosts' names to their numbers of slots."""
        raise NotImplementedError(f"{type(self).__name__} needs find_available_hosts_and_slots()")


class FixedHosts(HostDiscovery):
    """Hosts that the program sets."""

    def __init__(self, available_hosts):
        self._hosts = dict(available_hosts)

    def find_available_hosts_and_slots(self):
        return dict(self._hosts)

    def set(self, available_hosts):
        """Replaces the hosts."""
        self._hosts = dict(available_hosts)


class HostDiscoveryScript(HostDiscovery):
    """Hosts that a command prints, one `host` or `host:slots` per line."""

    def __init__(self, discovery_script, slots):
        """`slots`: of hosts whose line has no number."""
        self._command = discovery_script
        self._slots = slots

    def find_available_hosts_and_slots(self):
        """Runs the command by the shell. Fails: CalledProcessError, TimeoutExpired, ValueError."""
        done = subprocess.run(
            self._command, shell=True, check=True, stdout=subprocess.PIPE, text=True, timeout=TIME_OUT_S
        )
        found = {}
        for line in filter(None, map(str.strip, done.stdout.splitlines())):
            host, colon, count = line.rpartition(":")
            host, slots = (host, count) if colon else (line, self._slots)
            if slots is None or not str(slots).strip().isdecimal():
                raise ValueError(f"{self._command}: line {line!r} has no number of slots")
            found[host.strip()] = int(slots)
        return found
