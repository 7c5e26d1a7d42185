# SPDX-License-Identifier: Apache-2.0
"""Describes the machine, and measures how much of it other programs used meanwhile."""

import os
import platform
import resource
import time

TICK = os.sysconf("SC_CLK_TCK")


def busy_seconds():
    """CPU seconds that all cores of the machine have spent working."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICK


def own_seconds():
    used = 0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        used += usage.ru_utime + usage.ru_stime
    return used


class Neighbours:
    """Share of the machine that other processes have used since this object was made."""

    def __init__(self):
        self._begin = (time.monotonic(), busy_seconds(), own_seconds())

    def share(self):
        begin, busy, own = self._begin
        seconds = max(time.monotonic() - begin, 1e-3)
        others = busy_seconds() - busy - (own_seconds() - own)
        return max(0.0, others / seconds / os.cpu_count())


def wait_for_calm(limit_s, busy_share=0.07):
    """Waits until the machine has been nearly idle for half a second, at most `limit_s` seconds."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        busy = busy_seconds()
        time.sleep(0.5)
        if busy_seconds() - busy < 0.5 * busy_share * os.cpu_count():
            return


def describe():
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    return {"cpu": model, "cores": os.cpu_count(), "memory_gib": round(memory, 1), "kernel": platform.release(),
            "system": pretty_system()}


def pretty_system():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except (OSError, AttributeError):
        return "Linux"
