# SPDX-License-Identifier: Apache-2.0
"""Runs contenders round after round and collects their rows."""

import json
import os
import sys

from benchlib import contenders, machine, processes


def _progress(text):
    if sys.stderr.isatty():
        print("\r%-40s\r" % text, end="", file=sys.stderr, flush=True)


class Rounds:
    """Runs every other round in reverse order, so that a drift of the machine affects all contenders. Records the missing contenders
    with the reason (`missing`), and the failures (`failed`)."""

    def __init__(self, args, environment, command, directory):
        """`command(who, out)` is the command line that appends its rows to `out`; raises contenders.Missing."""
        self.missing, self.failed = {}, {}
        self._args, self._environment, self._command = args, environment, command
        self._out = os.path.join(directory, "rows")
        self._rows = {}  # (contender, case, bytes) -> rows of its rounds

    def of(self, who, case, size):
        return self._rows.get((who, case, size))

    def run(self):
        for number in range(self._args.rounds):
            order = [who for who in self._args.who if who not in self.missing and who not in self.failed]
            for who in reversed(order) if number % 2 else order:
                _progress("round %d of %d: %s" % (number + 1, self._args.rounds, who))
                self._run_one(who)
        _progress("")

    def report_absent(self):
        for who, reason in self.missing.items():
            print("\nnot measured: %s: %s" % (who, reason), end="")
        for who, reason in self.failed.items():
            print("\nFAILED: %s: %s" % (who, reason), end="")
        print(flush=True)

    def _run_one(self, who):
        try:
            command = self._command(who, self._out)
        except contenders.Missing as reason:
            self.missing[who] = str(reason)
            return
        if self._args.calm:
            machine.wait_for_calm(self._args.calm)
        neighbours = machine.Neighbours()
        ended = processes.run(command, self._args.timeout, self._environment)
        others = neighbours.share()
        if os.path.exists(self._out):
            with open(self._out, encoding="utf-8") as file:
                for line in file:
                    row = dict(json.loads(line), others_share=others)
                    self._rows.setdefault((who, row["case"], row["bytes"]), []).append(row)
            os.remove(self._out)
        if ended.code != 0:
            how = "exit code %s" % ended.code if ended.code is not None else "not done after %g s" % self._args.timeout
            self.failed[who] = "%s: %s" % (how, ended.output[-1500:])


def about(args):
    """The line that describes the machine and the run."""
    facts = machine.describe()
    return "%s, %d cores, %g GiB, Linux %s; %d ranks, %d rounds" % (
        facts["cpu"], facts["cores"], facts["memory_gib"], facts["kernel"], args.np, args.rounds)


def disturbed(rows):
    """A line about contenders that other programs disturbed, or an empty text."""
    names = sorted({row["who"] for row in rows if row["others_share"] > 0.06})
    return "\nothers used more than 6 %% of the machine in a round of: %s" % ", ".join(names) if names else ""
