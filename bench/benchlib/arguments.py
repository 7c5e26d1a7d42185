# SPDX-License-Identifier: Apache-2.0
"""Options that the command lines of the scripts share."""

import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Parser(argparse.ArgumentParser):
    """Refuses wrong usage with exit code 2 and one line, like the tools."""

    def __init__(self, description):
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter,
                         allow_abbrev=False)
        default_build = os.environ.get("HORO_BUILD") or os.path.join(ROOT, "build", "release")
        self.add_argument("--build", default=default_build, type=os.path.abspath,
                          help="build tree ($HORO_BUILD or build/release)")

    def error(self, message):
        print("%s: %s" % (self.prog, message), file=sys.stderr)
        sys.exit(2)

    def add_json(self):
        self.add_argument("--json", metavar="FILE", help="write the rows to FILE")

    def add_calm(self, default=0):
        self.add_argument("--calm", type=float, default=default, metavar="SECONDS",
                          help="wait up to this time before each run for an idle machine (%(default)s)")

    def add_who(self, known, default=None):
        self.add_argument("--who", type=names(known), default=list(default or known),
                          help="of %s (%s)" % (",".join(known), ",".join(default) if default else "all"))


def names(known):
    """Parses names of `known`, separated by commas."""

    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError("unknown '%s'; known: %s" % (name, ",".join(known)))
        return chosen

    return parse


def numbers(least, multiple=1):
    """Parses whole numbers from `least` up, separated by commas."""

    def parse(text):
        chosen = []
        for word in text.split(","):
            if not word.isascii() or not word.isdigit() or int(word) < least or int(word) % multiple:
                of = " that are multiples of %d" % multiple if multiple > 1 else ""
                raise argparse.ArgumentTypeError("'%s' is not a whole number from %d up%s" % (word, least, of))
            chosen.append(int(word))
        return chosen

    return parse


def number(least):
    """Parses one whole number from `least` up."""
    many = numbers(least)

    def parse(text):
        if "," in text:
            raise argparse.ArgumentTypeError("'%s' is not one number" % text)
        return many(text)[0]

    return parse


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError("'%s' is not a number of seconds above 0" % text)
    return value
