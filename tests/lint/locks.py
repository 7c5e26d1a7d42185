# SPDX-License-Identifier: Apache-2.0
"""Mutexes are those of base/mutex.hpp, and what they guard is touched only while they are held.

usage: locks.py ROOT [FOLDER...]

clang checks the marks (HORO_GUARDED_BY and the others) in every file of the product that includes base/mutex.hpp, directly or
through other headers. FOLDER: where headers of MPI lie. Without MPI, the files that need it are not checked, and the output says
so.
"""

import re
import sys
import tempfile

import precompiled
import tree

_HOME = "base/mutex.hpp"
_PRODUCT = ("apps/", "autotune/", "base/", "bindings/", "completions/", "discovery/", "launcher/", "runtime/", "timeline/")
_CODE = (".hpp", ".h", ".cpp", ".c", ".cu")
_COMMENT = re.compile(r"//.*")
_STANDARD = re.compile(r"\bstd::(?:(?:recursive_|shared_|timed_|recursive_timed_|shared_timed_)?mutex"
                       r"|lock_guard|unique_lock|scoped_lock|shared_lock|condition_variable_any)\b"
                       r"|#\s*include\s*<(?:mutex|shared_mutex)>")
_FLAGS = ["-Wno-everything", "-Wthread-safety", "-Werror", "-DHORO_VERSION_CODE=0", '-DHORO_MPI_NAME="mpi"']
_NOT_INSTALLED = re.compile(r"fatal error: '(mpi\.h)' file not found")


def _unchecked(root, paths):
    for path in paths:
        if path == _HOME or not path.endswith(_CODE):
            continue
        for number, line in enumerate(tree.lines(root, path), 1):
            found = _STANDARD.search(_COMMENT.sub("", line))
            if found:
                yield f"{path}:{number}: '{found.group()}': use horo::Mutex and horo::MutexLock ({_HOME}), whose use clang checks"


def _broken(root, paths, folders):
    includes = precompiled.Includes(root)
    marked = [path for path in paths if _HOME in includes.all(path)]
    sources = [path for path in marked if path.endswith(".cpp")]
    seen = frozenset().union(*(includes.all(path) for path in sources))
    files = sources + [path for path in marked if path.endswith(".hpp") and path not in seen]
    with tempfile.TemporaryDirectory() as folder:
        flags = [*_FLAGS, *(flag for include in folders for flag in ("-isystem", include))]
        errors = precompiled.check_files(root, folder, files, flags)
    for path in [path for path, text in errors.items() if _NOT_INSTALLED.search(text)]:
        print(f"{path}: not checked, because there is no <mpi.h> here")
        del errors[path]
    return [f"{path}: clang refuses it\n{text}" for path, text in sorted(errors.items())]


def check(root, folders=()):
    paths = [path for path in tree.files(root) if path.startswith(_PRODUCT)]
    return [*_unchecked(root, paths), *_broken(root, paths, folders)]


if __name__ == "__main__":
    tree.main(lambda root: check(root, sys.argv[2:]))
