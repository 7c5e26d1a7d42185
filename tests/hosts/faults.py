# SPDX-License-Identifier: Apache-2.0
"""Runs one job over four hosts for each seed, with one random fault; needs the machine that hosts.sh makes.

usage: faults.py HORO [--seeds N] [--first SEED] [--verbose]

A seed decides kind, moment and place of the fault, and how the agents are started. Afterwards the job has to have
ended in time, none of its processes may be left on any host, and its report must name the process or host that failed. Exit
code 1 means that one of these did not hold."""

import argparse
import collections
import os
import random
import re
import signal
import subprocess
import sys
import time

HOSTS = ("h1", "h2", "h3", "h4")
FOLDER = "/run/horo-hosts"
RANKS_PER_HOST = 2
HEARTBEAT_S = 1.0
START_TIMEOUT_S = 12.0
HANG_S = 40.0  # The longest duration of a correct end: a start that times out, and then the end of a cut host.
SURVIVE_S = 10.0
FIRST_WORD_S = 15.0  # An agent ends after this time if the launcher has not sent anything.
MARKER = "horo-fault-rank"
KINDS = ("rank killed", "agent killed", "guard killed", "pair killed", "session killed", "launcher killed",
         "agent stopped", "host cut", "exit code", "rank signal", "launcher signal")
MOMENTS = ("connecting", "starting", "running", "ending")


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def network_of(pid):
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return 0


class Process:
    def __init__(self, pid, host):
        self.pid, self.host = pid, host
        self.name = read(f"/proc/{pid}/comm").decode(errors="replace").strip()
        self.line = read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
        stat = read(f"/proc/{pid}/stat").decode(errors="replace").rpartition(") ")[2].split()
        self.state, self.parent = (stat[0], int(stat[1])) if len(stat) > 1 else ("Z", 0)

    def is_rank(self):
        return MARKER in self.line and self.name == "sh"

    def is_session(self):
        return self.name.startswith("sshd") and "root" in self.line

    def is_own(self):
        """Whether the process belongs to the host itself and not to a job."""
        # A connection that broke before the login stays with the server until LoginGraceTime.
        server = self.name.startswith("sshd") and ("listener" in self.line or "root" not in self.line)
        return server or "be_host" in self.line or self.line == "sleep 0.2" or self.state in "ZX"

    def __str__(self):
        return f"{self.host}: {self.pid} {self.name} {self.line[:60]}"


class Machine:
    """The processes of all hosts, seen from the PID namespace around theirs."""

    def __init__(self):
        self._networks = {}
        self._inits = {}
        for host in HOSTS:
            init = int(read(f"{FOLDER}/{host}.pid"))
            self._networks[network_of(init)] = host
            self._inits[init] = host

    def processes(self):
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) in self._inits:
                continue
            host = self._networks.get(network_of(entry))
            if host:
                process = Process(int(entry), host)
                if not process.is_own():
                    found.append(process)
        return found

    def on(self, host):
        return [process for process in self.processes() if process.host == host]


def hosts_sh(*words):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hosts.sh")
    subprocess.run(["bash", script, *words], check=True)


class Case:
    def __init__(self, seed):
        draw = random.Random(seed)
        self.seed = seed
        self.kind = draw.choice(KINDS)
        self.moment = draw.choice(MOMENTS)
        self.host = draw.choice(HOSTS)
        self.rank = draw.randrange(RANKS_PER_HOST) + RANKS_PER_HOST * HOSTS.index(self.host)
        self.code = draw.randrange(1, 120)
        self.number = draw.choice((signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGINT))
        self.flags = ["--fanout", str(draw.choice((1, 1, 2, 2, 32)))]
        if draw.random() < 0.2:
            self.flags += ["--ssh-program", "ssh"]
        self.delay = {"connecting": draw.uniform(0.0, 0.3), "starting": draw.uniform(0.2, 1.0),
                      "running": draw.uniform(0.0, 0.4), "ending": draw.uniform(0.0, 0.5)}[self.moment]

    def __str__(self):
        return f"seed {self.seed}: {self.kind} on {self.host} while {self.moment}, {' '.join(self.flags)}"

    def by_rank(self):
        return self.kind in ("exit code", "rank signal")

    def script(self):
        """The command of the ranks; it contains the fault if the ranks cause it."""
        lives = {"ending": 0.3, "running": 1000}.get(self.moment, 3)  # A fault during the start may be repaired.
        if not self.by_rank():
            return f"echo {MARKER}; sleep {lives}; :"
        end = f"exit {self.code}" if self.kind == "exit code" else f"kill -{int(self.number)} $$; sleep 9"
        pause = self.delay if self.moment in ("running", "ending") else 0
        return f'echo {MARKER}; [ "$RANK" != {self.rank} ] || {{ sleep {pause:.3f}; {end}; }}; sleep {lives}; :'

    def is_right(self, code, report):
        """Whether the job reported this fault, or had ended before it."""
        first = report.split("\n")[0] if report else ""
        if self.kind == "launcher killed":
            return code in (-signal.SIGKILL, 0)
        if self.kind == "launcher signal":
            return code == 0 or code == 143 and "stopped by signal 15" in first or \
                code == -signal.SIGTERM and not report  # The job had not begun.
        if self.kind == "exit code":
            return code == self.code and f"rank {self.rank} on {self.host} failed first: exit code {self.code}" in first
        if self.kind == "rank signal":
            return code == 128 + self.number and f"rank {self.rank} on {self.host} failed first: killed" in first
        if code == 0:
            return True  # The fault came after everything had ended.
        if self.kind == "rank killed":
            return code == 137 and re.search(rf"rank \d+ on {self.host} failed first: killed by signal 9", first)
        if code == 124:
            # A cut host cannot be told from a host that is slow to start.
            return self.kind in ("host cut", "agent stopped") and f"host {self.host}:" in first
        return code == 125 and re.search(rf"host {self.host} (was lost|cannot be used)", first)


class Fault:
    """Causes the fault of a case, as soon as its target exists."""

    def __init__(self, case, machine, job):
        self._case, self._machine, self._job = case, machine, job

    def strike(self):
        kind, host = self._case.kind, self._case.host
        if kind == "launcher killed":
            self._job.kill()
        elif kind == "launcher signal":
            self._job.send_signal(signal.SIGTERM)
        elif kind == "host cut":
            hosts_sh("cut", host)
        elif not self._case.by_rank():
            while self._job.poll() is None and not self._hit(kind, self._machine.on(host)):
                time.sleep(0.005)

    @staticmethod
    def _hit(kind, processes):
        number = signal.SIGSTOP if kind == "agent stopped" else signal.SIGKILL
        if kind == "rank killed":
            victims = [p for p in processes if p.is_rank()][:1]
        elif kind == "session killed":
            victims = [p for p in processes if p.is_session()][-1:]
        else:
            guards = [p for p in processes if p.name == "job-guard"]
            # Before the process has split in two, it is neither guard nor agent.
            agents = [p for p in processes if p.name == "horo-agent" and p.parent in {g.pid for g in guards}]
            victims = {"guard killed": guards, "pair killed": guards + agents}.get(kind, agents)
            if kind == "pair killed" and len(victims) < 2:
                return False
        for victim in victims:
            try:
                os.kill(victim.pid, number)
            except ProcessLookupError:
                pass
        return bool(victims)


class Sweep:
    def __init__(self, horo, verbose):
        self._horo, self._verbose = horo, verbose
        self._machine = Machine()
        self.problems = []
        self.wrong = []
        self.counts = collections.Counter()
        self.slowest_end = 0.0

    def run(self, seed):
        case = Case(seed)
        if self._verbose:
            print(case, flush=True)
        command = [self._horo, "run", "-H", ",".join(f"{host}:{RANKS_PER_HOST}" for host in HOSTS), "--tag", "off",
                   "--heartbeat-timeout", str(HEARTBEAT_S), "--start-timeout", str(START_TIMEOUT_S), "--grace", "1",
                   *case.flags, "sh", "-c", case.script()]
        with open("/run/faults.out", "wb+") as out, open("/run/faults.err", "wb+") as err:
            job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            self._await_moment(case, job)
            begin = time.monotonic()
            Fault(case, self._machine, job).strike()
            try:
                code = job.wait(HANG_S)
            except subprocess.TimeoutExpired:
                code = None
            took = time.monotonic() - begin
        report = read("/run/faults.err").decode(errors="replace")
        self._judge(case, code, report, took)
        if case.kind == "host cut":
            self._end_of_cut(case)
        self._look_for_survivors(case)
        self.counts[case.kind] += 1
        if code is None:
            job.kill()
            job.wait()
            self._clear()

    def _await_moment(self, case, job):
        if case.moment in ("running", "ending") and not case.by_rank():
            end = time.monotonic() + 20
            while read("/run/faults.out").count(MARKER.encode()) < RANKS_PER_HOST * len(HOSTS) and \
                    job.poll() is None and time.monotonic() < end:
                time.sleep(0.005)
        if not case.by_rank():
            time.sleep(case.delay)

    def _judge(self, case, code, report, took):
        if code is None:
            self.problems.append(f"{case}: HANG\n{report}")
            return
        self.slowest_end = max(self.slowest_end, took)
        if not case.is_right(code, report):
            self.wrong.append(f"{case}: exit code {code} after {took:.2f} s\n{report}")

    def _end_of_cut(self, case):
        """The cut host ends its processes, except for those that its ssh server keeps; then its network is restored."""
        self._await_none(case, FIRST_WORD_S + SURVIVE_S, lambda p: not p.is_session())
        hosts_sh("heal", case.host)

    def _look_for_survivors(self, case):
        self._await_none(case, SURVIVE_S + (60 if case.kind == "host cut" else 0), lambda p: True)

    def _await_none(self, case, limit, counts):
        end = time.monotonic() + limit
        while True:
            left = [p for p in self._machine.processes() if counts(p)]
            if not left:
                return
            if time.monotonic() > end:
                self.problems.append(f"{case}: SURVIVORS\n" + "\n".join(map(str, left)))
                self._clear()
                return
            time.sleep(0.02)

    def _clear(self):
        for process in self._machine.processes():
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("horo")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, default=int(time.time()) % 100000 * 1000)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    print(f"seeds {args.first} to {args.first + args.seeds - 1}", flush=True)
    sweep = Sweep(args.horo, args.verbose)
    for seed in range(args.first, args.first + args.seeds):
        sweep.run(seed)
    for problem in sweep.problems + sweep.wrong:
        print(problem, flush=True)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(sweep.counts.items()))
    print(f"{args.seeds} faults ({kinds}): {len(sweep.problems)} hangs or survivors, "
          f"{args.seeds - len(sweep.problems) - len(sweep.wrong)} right, the slowest end {sweep.slowest_end:.1f} s after")
    sys.exit(1 if sweep.problems or len(sweep.wrong) * 100 > args.seeds else 0)


if __name__ == "__main__":
    main()
