# SPDX-License-Identifier: Apache-2.0
"""Each header compiles alone.

usage: headers.py ROOT [FOLDER...]

FOLDER: where headers of MPI or Python lie. Without them, the headers that need them are not checked, and the output says so.
"""

import re
import sys
import tempfile

import precompiled
import tree

# A header may contain unused static functions.
_WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-missing-field-initializers"]
_NOT_INSTALLED = re.compile(r"fatal error: '(mpi\.h|Python\.h|gloo/[^']*|ATen/[^']*|c10/[^']*)' file not found")


def check(root, folders=()):
    flags = [*_WARNINGS, *(flag for folder in folders for flag in ("-isystem", folder))]
    paths = [path for path in tree.files(root) if path.split("/")[0] != "bench"]
    with tempfile.TemporaryDirectory() as folder:
        errors = precompiled.check_files(root, folder, [path for path in paths if path.endswith(".hpp")], flags)
        in_c = precompiled.Compiler(root, folder, ["-x", "c", "-std=c11", *_WARNINGS])
        errors |= {path: in_c.check(path) for path in paths if path.endswith(".h")}
    for path, text in errors.items():
        missing = _NOT_INSTALLED.search(text)
        if missing:
            print(f"{path}: not checked, because there is no <{missing.group(1)}> here")
            errors[path] = ""
    return [f"{path}: does not compile alone\n{text}" for path, text in sorted(errors.items()) if text]


if __name__ == "__main__":
    tree.main(lambda root: check(root, sys.argv[2:]))
