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
PHASES = ("before", "backward", "after", "check", "resets", "syncs", "enters")


class Player:
    """Plays one history. One member of the newest generation is spared, because somebody has to keep the state."""

    def __init__(self, job, chance):
        self.job = job
        self.chance = chance
        self.doomed = set()
        self.shrunk_in = -1
        self.log = []
        self.played = collections.Counter()

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
        if not victims:
            return None
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
            return None
        worker = self.chance.choice(sorted(victims))
        seconds = self.chance.choice((0.05, 0.5, 2, 8))
        # It may be ended for its silence, so nobody else is the keeper.
        self.doomed.add(worker)
        self.job.signal(victims[worker], signal.SIGSTOP)
        return f"worker {worker} stops for {seconds} s", seconds, lambda: self.job.signal(victims[worker], signal.SIGCONT)

    def at_phase(self):
        """One worker ends or stops itself in a phase of a step or of a recovery. Another is lost, so that there is one."""
        victims = self.victims()
        if not victims:
            return None
        chosen = self.chance.sample(sorted(victims), min(2, len(victims)))
        worker, phase = chosen[0], self.chance.choice(PHASES)
        number = self.chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP))
        self.doomed.update(chosen)
        self.job.tell(worker, phase, int(number))
        for other in chosen[1:]:
            self.job.signal(victims[other], signal.SIGKILL)

        def over():
            self.job.forget(worker, phase)
            self.job.signal(victims[worker], signal.SIGCONT)

        words = f"{number.name} for worker {worker} when it {phase}, SIGKILL to workers {chosen[1:]}"
        return words, self.chance.choice((1, 3, 8)), over

    def resize(self):
        slots = self.chance.randint(1, MOST_SLOTS)
        self.shrunk_in = self.members()[0] + 1
        self.job.offer({"localhost": slots})
        return f"{slots} slots"

    def flap(self):
        self.shrunk_in = self.members()[0] + 2
        slots = self.chance.choices(range(1, MOST_SLOTS + 1), k=3)
        self.job.offer({"localhost": slots[0]})
        later = [lambda n=n: self.job.offer({"localhost": n}) for n in slots[1:]]
        return f"slots {slots}", 0.4, later[0], 0.8, later[1]

    def discovery(self):
        # The job does not start after a failure of the first run.
        if not self.job.workers():
            return None
        how = self.chance.choice([name for name in DISCOVERY if name != "works"])
        self.job.discover(how)
        return f"the discovery script {how}", self.chance.choice((1, 4)), lambda: self.job.discover("works")

    def kinds(self):
        """As many as the weight of each."""
        kinds = [self.kill] * 3 + [self.kill_several] * 2 + [self.terminate] + [self.stop] * 2 + [self.at_phase] * 2
        return kinds + [self.resize] * 3 + [self.flap] + [self.discovery] * 2

    def play(self, events):
        """Plays this many events. All that happens later has happened in the end."""
        kinds = self.kinds()
        later, begin, due = [], monotonic(), monotonic()
        while (events or later) and self.job.runs():
            now = monotonic()
            for one in [one for one in later if one[0] <= now]:
                later.remove(one)
                one[1]()
            if events and due <= now:
                events -= 1
                kind = self.chance.choice(kinds)
                told = kind()
                if told is None:
                    continue
                words, rest = (told, ()) if isinstance(told, str) else (told[0], told[1:])
                later += [(now + rest[i], rest[i + 1]) for i in range(0, len(rest), 2)]
                self.log.append(f"{now - begin:.2f} s: {words}")
                self.played[kind.__name__] += 1
                due = now + self.chance.choice(PAUSES)
            sleep(0.01)


def first_records(job, limit):
    """Waits until a worker has begun to train. False: the job has ended, or nothing has come."""
    end = monotonic() + limit
    while monotonic() < end and job.runs():
        if any(os.path.getsize(os.path.join(job.told, name)) for name in os.listdir(job.told)):
            return True
        sleep(0.05)
    return False
