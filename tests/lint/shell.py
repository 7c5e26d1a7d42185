# SPDX-License-Identifier: Apache-2.0
"""Every shell script passes shellcheck.

usage: shell.py ROOT
"""

import subprocess

import tree


def check(root):
    scripts = [path for path in tree.files(root)
               if path.endswith(".sh") or (tree.lines(root, path)[:1] or [""])[0] in ("#!/bin/bash", "#!/bin/sh")]
    if not scripts:
        return []
    # SC2016 warns about every "$" in single quotes. Here such texts are meant for another shell.
    done = subprocess.run(["shellcheck", "--external-sources", "--exclude=SC2016", "--format=gcc", *scripts],
                          cwd=root, capture_output=True, text=True)
    return done.stdout.splitlines() + done.stderr.splitlines()


if __name__ == "__main__":
    tree.main(check)
