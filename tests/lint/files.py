# SPDX-License-Identifier: Apache-2.0
"""Rules of a single file: licence line, length, tabs, stray marks, links between documents.

usage: files.py ROOT
"""

import os
import re

import tree

CODE = (".hpp", ".h", ".cpp", ".c", ".cu", ".py", ".sh", ".cmake", "CMakeLists.txt")
MOST_LINES = 600
# Longer files with reason: an ABI is one file; generated files and kernel tables are not read from top to bottom.
MAY_BE_LONG = ("runtime/include/horo/horo.h", "runtime/kernels/", "docs/reference/", "completions/")

_SPDX = "SPDX-License-Identifier: Apache-2.0"
# Written in parts, so that this file does not contain them.
_MARKS = re.compile(r"\b(FIX" r"ME|X" r"XX|HA" r"CK)\b")
_TODO = re.compile(r"\bTO" r"DO\b")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:home|root|work|Users|mnt)/\w")


def _is_script(lines):
    return bool(lines) and lines[0].startswith("#!")


def _header_faults(path, lines):
    first = 1 if _is_script(lines) else 0
    if len(lines) <= first or _SPDX not in lines[first]:
        yield f"{path}:{first + 1}: the first line must be '{_SPDX}' in a comment"
    if len(lines) > MOST_LINES and not path.startswith(MAY_BE_LONG):
        yield f"{path}: {len(lines)} lines, at most {MOST_LINES}: one concept per file"
    if path.endswith(".hpp") and "#pragma once" not in lines:
        yield f"{path}: no '#pragma once'"


def _line_faults(path, lines):
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield f"{path}:{number}: a tab; indent by spaces"
        if line != line.rstrip():
            yield f"{path}:{number}: white space at the end"
        if _MARKS.search(line):
            yield f"{path}:{number}: '{_MARKS.search(line).group()}': describe what is wrong, or fix it"
        if _TODO.search(line) and "because" not in line:
            yield f"{path}:{number}: a deferred task without its reason ('because ...')"
        if _MACHINE_PATH.search(line):
            yield f"{path}:{number}: a path that exists only on one machine"


def _link_faults(root, path, lines):
    for number, line in enumerate(lines, 1):
        for target in _LINK.findall(line):
            name = target.split("#")[0]
            if name and ":" not in name and not os.path.exists(os.path.join(root, os.path.dirname(path), name)):
                yield f"{path}:{number}: the link to '{target}' leads to no file"


def check(root):
    faults = []
    for path in tree.files(root):
        lines = tree.lines(root, path)
        if path.endswith(CODE) or _is_script(lines):
            faults += _header_faults(path, lines)
            faults += _line_faults(path, lines)
        elif path.endswith((".md", ".json", ".yaml", ".yml", ".toml", ".in", ".txt")):
            faults += _line_faults(path, lines)
        if path.endswith(".md"):
            faults += _link_faults(root, path, lines)
    return faults


if __name__ == "__main__":
    tree.main(check)
