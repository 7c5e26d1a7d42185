# SPDX-License-Identifier: Apache-2.0
"""Lists of hosts, as programs read and write them."""

import re


class HostInfo:
    """One host and its number of slots."""

    def __init__(self, hostname, slots):
        self.hostname = hostname
        self.slots = slots

    @staticmethod
    def from_string(host_string):
        """Reads `host` or `host:slots`. Fails: ValueError."""
        host, colon, slots = host_string.strip().rpartition(":")
        host, slots = (host, slots) if colon else (slots, "1")
        if not host or not slots.isdecimal():
            raise ValueError(f"the host {host_string!r} is not host or host:slots")
        return HostInfo(host, int(slots))


def parse_hosts(hosts_string):
    """The hosts of a text such as "a:2,b:4". Fails: ValueError."""
    return [HostInfo.from_string(part) for part in hosts_string.split(",")]


def parse_host_files(filename):
    """The hosts of a host file, as the text that parse_hosts() reads. A line is `host slots=N`. Fails: OSError,
    ValueError."""
    found = []
    with open(filename) as file:
        for line in file:
            words = line.partition("#")[0].split()
            slots = [re.fullmatch(r"slots=(\d+)", word) for word in words[1:]]
            if len(words) > 2 or None in slots:
                raise ValueError(f"{filename}: the line {line.strip()!r} is not host slots=N")
            if words:
                found.append(f"{words[0]}:{slots[0].group(1) if slots else 1}")
    return ",".join(found)
