# SPDX-License-Identifier: Apache-2.0
"""Compiles files alone, without parsing what many share again and again.

A few headers that many files include are precompiled. A file is then compiled on top of one that it includes in any case, so
the compiler sees exactly the declarations that it would see without. A precompiled header on top of another one would save
more, but clang 16 loses macros there.
"""

import concurrent.futures
import os
import re
import subprocess

import tree

CLANG = "clang++-16"
_INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
_IF = re.compile(r"\s*#\s*if")
_END = re.compile(r"\s*#\s*endif")
# Each further one saves less than it costs.
_MOST_BASES = 16
# Precompiling a header takes about as long as compiling so many.
_COST_OF_BASE = 1.5


class Includes:
    """Knows what each file includes, itself or through headers of the tree. Conditional includes do not count."""

    def __init__(self, root):
        self._root = root
        self._direct = {}
        self._all = {}

    def all(self, path):
        """Paths of headers of the tree, and names of other headers."""
        if path not in self._all:
            self._all[path] = frozenset()  # A cycle, which another test refuses, ends here.
            self._all[path] = frozenset().union(*({name} | self.all(name) for name in self._directly(path)))
        return self._all[path]

    def weight(self, path):
        """Roughly how long it takes to compile a header."""
        return 1 + len(self.all(path))

    def _directly(self, path):
        if path not in self._direct:
            found, depth = [], 0
            for line in tree.lines(self._root, path) if self.is_here(path) else []:
                depth += bool(_IF.match(line)) - bool(_END.match(line))
                match = _INCLUDE.match(line)
                if match and depth == 0:
                    public = "runtime/include/" + match.group(1)
                    found.append(public if self.is_here(public) else match.group(1))
            self._direct[path] = found
        return self._direct[path]

    def is_here(self, path):
        return os.path.isfile(os.path.join(self._root, path))


def choose_bases(includes, paths):
    """The headers whose precompiled form saves most, as a dictionary from each path to its base or None."""
    base = dict.fromkeys(paths)
    headers = {name for path in paths for name in includes.all(path) if name.endswith(".hpp") and includes.is_here(name)}
    saved = {path: 0 for path in paths}
    for _ in range(_MOST_BASES):
        def gain(candidate):
            users = [path for path in paths if candidate in includes.all(path)]
            return (sum(max(0, includes.weight(candidate) - saved[path]) for path in users)
                    - _COST_OF_BASE * includes.weight(candidate), candidate)
        candidates = [path for path in headers if path not in base.values()]
        best = max(map(gain, candidates), default=(0, ""))
        if best[0] <= 0:
            break
        for path in paths:
            if best[1] in includes.all(path) and includes.weight(best[1]) > saved[path]:
                base[path], saved[path] = best[1], includes.weight(best[1])
    return base


class Compiler:
    """Runs clang; `folder` is for its files."""

    def __init__(self, root, folder, flags):
        self._root = root
        self._folder = folder
        self._flags = [*flags, "-I", root, "-I", os.path.join(root, "runtime/include")]

    def check(self, path, *flags):
        """Compiles a file alone. Returns its errors, or ""."""
        return self._run(path, [*flags, "-fsyntax-only"])

    def precompile(self, path):
        """Returns the precompiled header, or None when the header has errors."""
        file = os.path.join(self._folder, path.replace("/", "@") + ".pch")
        return None if self._run(path, ["-x", "c++-header", "-fpch-instantiate-templates", "-o", file]) else file

    def _run(self, path, flags):
        main = path
        if path.endswith((".hpp", ".h")):
            # The compiler warns about a "#pragma once" in its main file.
            main = os.path.join(self._folder, path.replace("/", "@"))
            with open(main, "w", encoding="utf-8") as file:
                file.write(f'#include "{path}"\n')
        done = subprocess.run([CLANG, *flags, *self._flags, main], capture_output=True, text=True, cwd=self._root)
        return (done.stderr.rstrip() or f"{CLANG} ends with {done.returncode}") if done.returncode else ""


def check_files(root, folder, paths, flags):
    """Compiles C++ headers and source files alone. Returns a dictionary of the errors of those that do not compile."""
    compiler = Compiler(root, folder, ["-std=c++20", *flags])
    base = choose_bases(Includes(root), paths)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        chosen = sorted(set(base.values()) - {None})
        kept = dict(zip(chosen, pool.map(compiler.precompile, chosen)))

        def check(path):
            file = kept.get(base[path])
            return compiler.check(path, "-x", "c++", *(["-include-pch", file] if file else []))
        # To precompile a header is to compile it alone.
        left = [path for path in paths if not kept.get(path)]
        errors = dict(zip(left, pool.map(check, left)))
    print(f"{len(paths)} files checked, on top of {len(chosen)} headers")
    return {path: text for path, text in errors.items() if text}
