# SPDX-License-Identifier: Apache-2.0
"""What may happen to an elastic job over several hosts, besides what happens to its workers."""

import signal

from live_hosts import HEAD
from plays import Player

MOST_ON_HOST = 2


class HostsPlayer(Player):
    """One member of the newest generation is spared, with its host. `slots`: as offered first, by host."""

    def __init__(self, job, chance, slots):
        super().__init__(job, chance)
        self.slots = slots
        self.offered = dict(slots)

    def to_lose(self):
        """Hosts without which a member of the newest generation is left that nothing has happened to."""
        there = self.job.workers()
        newest, members = self.members()
        keepers = {self.job.host_of(there[one]) for one in members if one in there and one not in self.doomed}
        if not newest:
            keepers = {next(iter(self.slots))}
        return [host for host in self.slots if keepers - {host}]

    def choose(self, hosts):
        """A host of these that may be lost, and whose workers nobody counts on from now on. None: there is none."""
        hosts = [host for host in hosts if host in self.to_lose()]
        if not hosts:
            return None
        host = self.chance.choice(hosts)
        self.doomed.update(self.job.workers_on(host))
        return host

    def others(self):
        return [host for host in self.slots if host != HEAD]

    def offer(self, host, slots):
        self.offered[host] = slots
        self.job.offer({name: count for name, count in self.offered.items() if count})

    def cut(self):
        host = self.choose(self.others())
        if not host:
            return None
        seconds, mend = self.chance.choice((0.5, 3, 8)), ("heal", host)
        self.job.break_network(("cut", host), mend)
        return f"{host} is cut off for {seconds} s", seconds, lambda: self.job.mend_network(*mend)

    def deaf(self):
        """Frames are lost in one direction only."""
        host = self.choose(self.others())
        if not host:
            return None
        pair = self.chance.choice(((host, HEAD), (HEAD, host)))
        seconds = self.chance.choice((0.5, 3, 8))
        self.job.break_network(("drop", *pair), ("carry", *pair))
        words = f"frames from {pair[0]} to {pair[1]} are lost for {seconds} s"
        return words, seconds, lambda: self.job.mend_network("carry", *pair)

    def part(self):
        """Two hosts do not hear each other, but the launcher hears both."""
        left, right = pair = self.chance.sample(self.others(), 2)
        seconds = self.chance.choice((0.5, 3, 6))
        backward = (right, left)
        for one in (pair, backward):
            self.job.break_network(("drop", *one), ("carry", *one))

        def mend():
            self.job.mend_network("carry", *pair)
            self.job.mend_network("carry", *backward)

        return f"{left} and {right} do not hear each other for {seconds} s", seconds, mend

    def freeze(self):
        host = self.choose(self.slots)
        if not host:
            return None
        frozen, seconds = self.job.on(host), self.chance.choice((0.5, 3, 8))
        self.job.signal_all(frozen, signal.SIGSTOP)
        return f"{host} freezes for {seconds} s", seconds, lambda: self.job.signal_all(frozen, signal.SIGCONT)

    def crash(self):
        host = self.choose(self.slots)
        if not host:
            return None
        self.job.signal_all(self.job.on(host), signal.SIGKILL)
        return f"{host} crashes"

    def lose_agent(self):
        host = self.choose(self.slots)
        if not host:
            return None
        self.job.signal_all(self.job.agents(host), signal.SIGKILL)
        return f"SIGKILL to the agent of {host}"

    def preempt(self):
        """The host's agent is told to end. The host may be powered off soon after, and comes back later."""
        host = self.choose([host for host in self.slots if self.offered[host]])
        if not host:
            return None
        self.job.signal_all(self.job.agents(host), signal.SIGTERM)
        off, back = self.chance.choice((0.2, 2, 4)), self.chance.choice((3, 5))
        powered_off = self.chance.random() < 0.5

        def leave():
            self.offer(host, 0)
            if powered_off:
                self.job.signal_all(self.job.on(host), signal.SIGKILL)

        words = f"SIGTERM to the agent of {host}, {'off' if powered_off else 'not offered'} after {off} s"
        return words, off, leave, off + back, lambda: self.offer(host, self.slots[host])

    def resize(self):
        host, slots = self.chance.choice(list(self.slots)), self.chance.randint(0, MOST_ON_HOST)
        if slots < self.offered[host] and not self.choose([host]):
            return None
        self.offer(host, slots)
        return f"{host} offers {slots} slots"

    def flap(self):
        host = self.choose(self.slots)
        if not host:
            return None
        self.offer(host, 0)
        there, gone = (lambda: self.offer(host, self.slots[host])), (lambda: self.offer(host, 0))
        return f"{host} goes, comes, goes and comes", 0.5, there, 1.2, gone, 2.5, there

    def kinds(self):
        kinds = [self.cut] * 3 + [self.deaf, self.part, self.freeze, self.crash, self.lose_agent] + [self.preempt] * 3
        kinds += [self.kill] * 2 + [self.kill_several, self.terminate, self.stop] + [self.at_phase] * 2
        return kinds + [self.resize] * 3 + [self.flap, self.discovery]
