# SPDX-License-Identifier: Apache-2.0
"""Each header compiles alone.

usage: headers.py ROOT [CXX]

A header that its own source file includes first is compiled alone by the build already; the others are compiled here.
"""

import concurrent.futures
import os
import re
import subprocess
import sys

import tree

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def _proven_by_build(root, path):
    source = os.path.splitext(path)[0] + ".cpp"
    if not os.path.isfile(os.path.join(root, source)):
        return False
    for line in tree.lines(root, source):
        match = _INCLUDE.match(line)
        if match:
            return match.group(1) == path
    return False


def _compile(root, path, compiler):
    language = "c" if path.endswith(".h") else "c++"
    standard = "-std=c11" if language == "c" else "-std=c++20"
    # Unused static functions are a header's right.
    command = [compiler, "-x", language, standard, "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
               "-Wno-unused-function", "-Wno-missing-field-initializers", "-I", root, "-I", os.path.join(root, "runtime/include"), "-"]
    done = subprocess.run(command, input=f'#include "{path}"\n', capture_output=True, text=True)
    return None if done.returncode == 0 else f"{path}: does not compile alone\n{done.stderr.rstrip()}"


def check(root, compiler="c++"):
    headers = [path for path in tree.files(root) if path.endswith((".hpp", ".h")) and path.split("/")[0] != "bench"]
    alone = [path for path in headers if not _proven_by_build(root, path)]
    print(f"{len(headers)} headers, {len(alone)} of them compiled here")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [fault for fault in pool.map(lambda path: _compile(root, path, compiler), alone) if fault]


if __name__ == "__main__":
    tree.main(lambda root: check(root, *sys.argv[2:3]))
