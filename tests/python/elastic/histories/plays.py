# SPDX-License-Identifier: Apache-2.0
"""What may happen to an elastic job. Each function changes the job at once, and may return what
happens later: (seconds, function)."""

import collections
import os
import signal
from time import monotonic, sleep

from live_job import DISCOVERY
from records import Records

MOST_SLOTS = 4
PAUSES = (0, 0, 0.02, 0.1, 0.3, 1, 3, 3)


class Player:
    """Plays one history. One member of the newest generation is spared, because somebody has to keep the state."""

    def __init__(self, job, chance):
        self.job = job
        self.chance = chance
        self.doomed = set()
        self.shrunk_in = -1
        self.log = []

    def members(self):
        """The workers of the newest generation in which any has begun, by rank, and its number."""
        ranks = Records(self.job.told).ranks()
        if not ranks:
            return 0, []
        newest = max(ranks)
        return newest, [worker for _, worker in sorted(ranks[newest].items())]

    def victims(self):
        """Workers that may be lost now. While hosts shrink, those that stay are the oldest."""
        there = self.job.workers()
        newest, members = self.members()
        keepers = [one for one in members if one in there and one not in self.doomed]
        if not keepers:
            # Nobody has state yet, or only the last keeper of an older generation.
            return {} if newest else {one: there[one] for one in list(there)[1:]}
        keeper = keepers[0] if self.shrunk_in >= newest else self.chance.choice(keepers)
        return {one: pid for one, pid in there.items() if one != keeper}

    def kill(self, most=1, number=signal.SIGKILL):
        victims = self.victims()
        chosen = self.chance.sample(sorted(victims), min(most, len(victims)))
        self.doomed.update(chosen)
        for worker in chosen:
            self.job.signal(victims[worker], number)
        return f"{signal.Signals(number).name} to workers {chosen}"

    def kill_several(self):
        return self.kill(self.chance.choice((2, MOST_SLOTS)))

    def terminate(self):
        return self.kill(number=signal.SIGTERM)

    def stop(self):
        victims = self.victims()
        if not victims:
            return "nobody to stop"
        worker = self.chance.choice(sorted(victims))
        seconds = self.chance.choice((0.05, 0.5, 2, 8))
        # It may be ended for its silence, so nobody else is the keeper.
        self.doomed.add(worker)
        self.job.signal(victims[worker], signal.SIGSTOP)
        return f"worker {worker} stops for {seconds} s", seconds, lambda: self.job.signal(victims[worker], signal.SIGCONT)

    def resize(self):
        slots = self.chance.randint(1, MOST_SLOTS)
        self.shrunk_in = self.members()[0] + 1
        self.job.offer(slots)
        return f"{slots} slots"

    def flap(self):
        self.shrunk_in = self.members()[0] + 2
        slots = self.chance.choices(range(1, MOST_SLOTS + 1), k=3)
        self.job.offer(slots[0])
        later = [lambda n=n: self.job.offer(n) for n in slots[1:]]
        return f"slots {slots}", 0.4, later[0], 0.8, later[1]

    def discovery(self):
        how = self.chance.choice([name for name in DISCOVERY if name != "works"])
        self.job.discover(how)
        return f"the discovery script {how}", self.chance.choice((1, 4)), lambda: self.job.discover("works")

    def play(self, events):
        """Plays this many events. All that happens later has happened in the end."""
        kinds = [self.kill] * 4 + [self.kill_several] * 2 + [self.terminate] + [self.stop] * 2
        kinds += [self.resize] * 3 + [self.flap] + [self.discovery] * 2
        later, played, begin, due = [], collections.Counter(), monotonic(), monotonic()
        while (events or later) and self.job.runs():
            now = monotonic()
            for one in [one for one in later if one[0] <= now]:
                later.remove(one)
                one[1]()
            if events and due <= now:
                events -= 1
                kind = self.chance.choice(kinds)
                told = kind()
                words, rest = (told, ()) if isinstance(told, str) else (told[0], told[1:])
                later += [(now + rest[i], rest[i + 1]) for i in range(0, len(rest), 2)]
                self.log.append(f"{now - begin:.2f} s: {words}")
                played[kind.__name__] += 1
                due = now + self.chance.choice(PAUSES)
            sleep(0.01)
        return played


def first_records(job, limit):
    """Waits until a worker has begun to train. False: the job has ended, or nothing has come."""
    end = monotonic() + limit
    while monotonic() < end and job.runs():
        if any(os.path.getsize(os.path.join(job.told, name)) for name in os.listdir(job.told)):
            return True
        sleep(0.05)
    return False
