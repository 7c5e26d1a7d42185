# SPDX-License-Identifier: Apache-2.0
"""An elastic training on the hosts that tests/hosts/hosts.sh makes, seen from their head: processes of all hosts are
among its own, and it can cut each network."""

import os
import signal
import subprocess

from live_job import LiveJob, environment_of

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "hosts", "hosts.sh")
INSIDE = "HORO_HISTORIES_INSIDE"
HEAD = "head"


def continue_among_hosts(count, arguments):
    """Starts this program again on the head of `count` hosts, unless it is there."""
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("bash", ["bash", SCRIPT, "run", str(count), *arguments])


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""


def network_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def networks_of(hosts):
    """The hosts by their networks. hosts.sh notes the first process of each host."""
    found = {network_of("self"): HEAD}
    for host in hosts:
        if host != HEAD:
            with open(f"/run/horo-hosts/{host}.pid") as file:
                found[network_of(file.read().strip())] = host
    return found


class HostsJob(LiveJob):
    """Only one such job runs at a time, because the agents do not have its mark."""

    def __init__(self, folder, horo, offered, options):
        self.networks = networks_of(offered)
        self.lost = set()  # commands of hosts.sh that mend a network
        super().__init__(folder, horo, offered, options)

    def owns(self, pid, environment):
        return super().owns(pid, environment) or name_of(pid).startswith("horo-")

    def host_of(self, pid):
        return self.networks.get(network_of(pid), "")

    def on(self, host):
        """The agents and workers there."""
        ranks = [pid for pid, environment in self.processes().items() if "HORO_WORKER" in environment]
        return [pid for pid in ranks if self.host_of(pid) == host] + self.agents(host)

    def agents(self, host):
        return [pid for pid in self.processes() if name_of(pid) == "horo-agent" and self.host_of(pid) == host]

    def workers_on(self, host):
        return {worker for worker, pid in self.workers().items() if self.host_of(pid) == host}

    def signal_all(self, pids, number):
        for pid in pids:
            self.signal(pid, number)

    @staticmethod
    def network(*words):
        subprocess.run(["bash", SCRIPT, *words], check=True)

    def break_network(self, words, mended_by):
        self.network(*words)
        self.lost.add(mended_by)

    def mend_network(self, *words):
        if words in self.lost:
            self.lost.remove(words)
            self.network(*words)

    def restore(self):
        for words in list(self.lost):
            self.mend_network(*words)
        self.signal_all(self.processes(), signal.SIGCONT)

    def left_after(self, limit):
        self.restore()
        return super().left_after(limit)
