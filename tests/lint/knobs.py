# SPDX-License-Identifier: Apache-2.0
"""Every knob is in the table, and is either read by code or declared inert, so that setting it gives a warning.

usage: knobs.py ROOT
"""

import re

import tree

TABLE = "base/knobs/knob_table.cpp"
ROWS = re.compile(r"inline constexpr Knob<[^;{]*>\s+(k\w+)\s*\{")
READERS = ("apps/", "discovery/", "launcher/", "runtime/", "timeline/")


def _rows(root):
    """(path, line, name, text) of each row."""
    for path in tree.files(root):
        if not path.startswith("base/knobs/") or not path.endswith(".hpp"):
            continue
        text = "\n".join(tree.lines(root, path))
        starts = list(ROWS.finditer(text))
        for start, after in zip(starts, starts[1:] + [None]):
            body = text[start.end(): after.start() if after else len(text)]
            yield path, text.count("\n", 0, start.start()) + 1, start.group(1), body


def _read(root):
    """The names of the knobs whose value some code outside the table reads."""
    names = set()
    for path in tree.files(root):
        if path.startswith(READERS) and path.endswith((".cpp", ".hpp")):
            text = "\n".join(tree.lines(root, path))
            names.update(re.findall(r"\bknobs::(k\w+)\b(?!\.text)", text))
    return names


def check(root):
    faults = []
    read = _read(root)
    table = set(re.findall(r"row\(knobs::(k\w+)\)", "\n".join(tree.lines(root, TABLE))))
    for path, line, name, body in _rows(root):
        inert = ".inert =" in body
        if name not in table:
            faults.append(f"{path}:{line}: {name} is not in {TABLE}")
        if inert and name in read:
            faults.append(f"{path}:{line}: {name} is declared inert, but code reads it")
        if not inert and name not in read:
            faults.append(f"{path}:{line}: no code reads {name}; give it a reader, or `.inert` with the reason")
    return faults


if __name__ == "__main__":
    tree.main(check)
