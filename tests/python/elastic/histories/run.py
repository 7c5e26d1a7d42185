#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays random histories of elastic trainings with real processes: ranks are killed, stopped and
terminated, hosts grow and shrink, discovery scripts fail, at any time and several at once. With --hosts the job runs
on hosts that tests/hosts/hosts.sh makes, which are also cut off, frozen, preempted and crash.

usage: run.py HORO [--hosts N] [--seeds N] [--first SEED] [--events N] [--keep FOLDER]

After each history: no job hangs, its exit code is right, no process is left, all ranks have had equal parameters
after each step, every sample of each epoch was visited once, no step was lost, and one process that takes the same steps
comes to the same parameters. It prints a line for each seed and a sum, and ends with 1 if a history failed. The folders
of these stay.
"""

import argparse
import collections
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from live_hosts import HEAD, HostsJob, continue_among_hosts
from live_job import LiveJob
from plays import MOST_SLOTS, Player, first_records
from plays_on_hosts import MOST_ON_HOST, HostsPlayer
from records import Records, Wrong, require

# How a history may end before the training does, and the job's exit code then.
EARLY_ENDS = {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9}
LEFT_S = 20


def options_of(chance, slots, heartbeat):
    options = ["-np", str(slots), "--min-np", "1", "--slot-restarts", "1000"]
    options += ["--rejoin-timeout", "4", "--discovery-timeout", "2", "--heartbeat-timeout", heartbeat]
    if chance.random() < 0.7:
        options += ["--max-np", str(chance.randint(slots, MOST_SLOTS))]
        options += ["--spares", "1"] if chance.random() < 0.3 else []
    return options


def wait_for_end(job, limit):
    end = time.monotonic() + limit
    while job.runs() and time.monotonic() < end:
        time.sleep(0.05)
    require(not job.runs(), f"the job did not end within {limit} s after the last event")
    return job.launcher.returncode


def begin_here(chance, arguments, folder):
    slots = chance.randint(2, MOST_SLOTS)
    offered = {"localhost": MOST_SLOTS}
    job = LiveJob(folder, arguments.horo, {"localhost": slots}, options_of(chance, slots, "60"))
    return job, Player(job, chance), offered


def begin_on_hosts(chance, arguments, folder):
    names = [HEAD] * (chance.random() < 0.3) + [f"h{i + 1}" for i in range(arguments.hosts)]
    offered = {name: chance.randint(1, MOST_ON_HOST) for name in names}
    slots = min(sum(offered.values()), MOST_SLOTS)
    options = [*options_of(chance, slots, "4"), "--blacklist-cooldown-range", "1,4", "--grace", "3"]
    job = HostsJob(folder, arguments.horo, offered, options)
    return job, HostsPlayer(job, chance, offered), offered


def finish(job, offered, chance, limit):
    """Ends the job, in some histories by a signal. Returns which, and the exit code."""
    job.discover("works")
    job.offer(offered)
    early = chance.choice([None] * 9 + list(EARLY_ENDS))
    if early is None:
        job.stop_training()
        return None, wait_for_end(job, limit)
    job.launcher.send_signal(getattr(signal, early))
    return early, wait_for_end(job, limit)


def check(job, early, code):
    left = job.left_after(LEFT_S)
    require(not left, "processes are left:", {pid: one.get("HORO_WORKER") for pid, one in left.items()})
    wanted = EARLY_ENDS[early] if early else 0
    require(code == wanted, f"exit code {code}, not {wanted} ({early or 'the end of the training'})")
    if early is None:
        require("Traceback" not in job.output(), "a rank has a traceback")
    records = Records(job.told)
    if records.lines:
        records.require_all(finished=early is None)
    return records


def play(seed, arguments, folder, played):
    """Adds the events to `played`. Returns the workers' records and the last line about the end."""
    chance = random.Random(seed)
    begin = begin_on_hosts if arguments.hosts else begin_here
    job, player, offered = begin(chance, arguments, folder)
    player.played = played
    try:
        # Some histories begin while the job starts.
        began = chance.random() < 0.2 or first_records(job, arguments.limit)
        require(began, "the training has not begun")
        player.play(chance.randint(1, arguments.events))
        ends = time.monotonic()
        early, code = finish(job, offered, chance, arguments.limit)
        player.log.append(f"{early or 'the end'}: {time.monotonic() - ends:.2f} s until all was over")
        records = check(job, early, code)
    finally:
        job.restore()
        if job.runs() or job.processes():
            job.end_by_force()
        with open(os.path.join(folder, "events"), "w") as file:
            file.write("\n".join(player.log) + "\n")
    return records, player.log[-1]


class Summary:
    def __init__(self):
        self.failed, self.still, self.done = [], [], 0
        self.events, self.histories, self.failures = collections.Counter(), collections.Counter(), collections.Counter()

    def add(self, seed, played, records):
        """`records`: None after a failure."""
        self.done += 1
        self.events += played
        self.histories.update(set(played))
        if records:
            self.still += records.standstills()
        else:
            self.failed.append(seed)
            self.failures.update(set(played))

    def print(self):
        print(f"{self.done} histories, {len(self.failed)} failed: {self.failed}")
        print(f"{'kind':>14}  events  histories  failed")
        for kind in sorted(self.events):
            print(f"{kind:>14}  {self.events[kind]:6}  {self.histories[kind]:9}  {self.failures[kind]:6}")
        if self.still:
            still = sorted(self.still)
            half, most = still[len(still) // 2], still[-1]
            print(f"{len(still)} changes; between their steps {half:.2f} s (median), {most:.2f} s at most")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("horo")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--events", type=int, default=8, help="at most so many in a history")
    parser.add_argument("--limit", type=float, default=400, help="seconds until a job must have begun or ended")
    parser.add_argument("--hosts", type=int, default=0, help="test hosts beside this machine; needs root")
    parser.add_argument("--keep", help="the folder for the folders of histories that fail")
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.hosts:
        continue_among_hosts(arguments.hosts, [sys.executable, *sys.argv])
    top = tempfile.mkdtemp(prefix="horo-histories-", dir=arguments.keep)
    summary = Summary()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        folder, played = os.path.join(top, str(seed)), collections.Counter()
        begin = time.monotonic()
        try:
            records, end = play(seed, arguments, folder, played)
        except (Wrong, OSError, ValueError, KeyError):
            summary.add(seed, played, None)
            print(f"seed {seed} FAILED, see {folder}:\n{traceback.format_exc()}", flush=True)
            continue
        summary.add(seed, played, records)
        took, generations, steps = time.monotonic() - begin, len(records.ranks()), records.last_step()
        words = f"{sum(played.values())} events, {generations} generations, {steps} steps"
        print(f"seed {seed}: {words}, {took:.1f} s; {end}", flush=True)
        shutil.rmtree(folder)
    summary.print()
    if not summary.failed:
        shutil.rmtree(top)
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
