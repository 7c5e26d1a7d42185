# SPDX-License-Identifier: Apache-2.0
"""A running elastic training whose processes and hosts a test changes."""

import os
import signal
import subprocess
import sys
import time

MARK = "HORO_TEST_HISTORY"
TRAINING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "jobs", "train_until_told.py")

DISCOVERY = {
    "works": "cat {hosts}",
    "fails": "exit 3",
    "prints garbage": "echo localhost:many",
    "prints bytes": "head -c 4096 /bin/sh",
    "hangs": "sleep 3600",
    "prints too much": "seq -f h%.0f 200000",
}


def environment_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(word.split("=", 1) for word in words if "=" in word)


def replace(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.chmod(path + ".new", 0o755)
    os.replace(path + ".new", path)


class LiveJob:
    def __init__(self, folder, horo, offered, options):
        self.folder = folder
        self.told = os.path.join(folder, "told")
        self.report = os.path.join(folder, "report.json")
        os.makedirs(self.told)
        self.mark = f"{os.getpid()}.{os.path.basename(folder)}.{time.time_ns()}"
        self.discover("works")
        self.offer(offered)
        command = [horo, "run", *options, "--json-report", self.report]
        command += ["--host-discovery-script", os.path.join(folder, "discover")]
        command += [sys.executable, TRAINING, self.told, "0", "0"]
        with open(os.path.join(folder, "output"), "w") as output:
            self.launcher = subprocess.Popen(
                command,
                env={**os.environ, "OMP_NUM_THREADS": "1", MARK: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def offer(self, slots):
        """The hosts and their slots from now on, in this order."""
        replace(os.path.join(self.folder, "hosts"), "".join(f"{host}:{count}\n" for host, count in slots.items()))

    def discover(self, how):
        text = DISCOVERY[how].format(hosts=os.path.join(self.folder, "hosts"))
        replace(os.path.join(self.folder, "discover"), f"#!/bin/sh\n{text}\n")

    def processes(self):
        """All that is left of the job: the environment of each process by its id."""
        found = {int(name): environment_of(name) for name in os.listdir("/proc") if name.isdigit()}
        return {pid: found[pid] for pid in sorted(found) if self.owns(pid, found[pid])}

    def owns(self, _pid, environment):
        return environment.get(MARK) == self.mark

    def workers(self):
        """Process ids by the numbers of the workers. Children of a worker have its environment, and higher ids."""
        found = {}
        for pid, environment in self.processes().items():
            if "HORO_WORKER" in environment:
                found.setdefault(int(environment["HORO_WORKER"]), pid)
        return found

    def signal(self, pid, number):
        # The process may have ended, and another may have its number.
        if not self.owns(pid, environment_of(pid)):
            return
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def tell(self, worker, phase, number):
        """The worker gets this signal when it comes to the phase."""
        replace(os.path.join(self.told, f"{phase}.{worker}"), str(number))

    def forget(self, worker, phase):
        path = os.path.join(self.told, f"{phase}.{worker}")
        if os.path.exists(path):
            os.remove(path)

    def restore(self):
        """Undoes what keeps parts of the job from ending."""

    def runs(self):
        return self.launcher.poll() is None

    def stop_training(self):
        replace(os.path.join(self.told, "stop"), "")

    def output(self):
        with open(os.path.join(self.folder, "output"), errors="replace") as file:
            return file.read()

    def left_after(self, limit):
        """The processes that are there `limit` seconds after the launcher's end."""
        end = time.monotonic() + limit
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
        return self.processes()

    def end_by_force(self):
        """Lets all workers print where they are, and ends everything."""
        for pid in self.workers().values():
            self.signal(pid, signal.SIGCONT)
            self.signal(pid, signal.SIGUSR2)
        time.sleep(1)
        for pid in self.processes():
            self.signal(pid, signal.SIGKILL)
        self.launcher.wait()
