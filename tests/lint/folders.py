# SPDX-License-Identifier: Apache-2.0
"""A folder is small enough to read as a list, and a header's name says which header it is.

usage: folders.py ROOT

A folder of the product has at most 25 code files, its sub-folders not counted. No two headers in the tree have the same
file name.
"""

import collections
import os

import tree

MOST_FILES = 25

# File names that several headers may share, and why. At most 5.
SHARED = {}
MOST_SHARED = 5

NOT_PRODUCT = ("bench", "docs", "examples", "tests")
_CODE = (".hpp", ".h", ".cpp", ".c", ".cu", ".py")


def large_folders(root):
    sizes = collections.Counter(os.path.dirname(path) for path in tree.files(root)
                                if path.endswith(_CODE) and path.split("/")[0] not in NOT_PRODUCT)
    for folder, size in sorted(sizes.items()):
        if size > MOST_FILES:
            yield f"{folder}: {size} code files, at most {MOST_FILES}: give it sub-folders"


def duplicate_headers(root, shared):
    if len(shared) > MOST_SHARED:
        yield f"{len(shared)} header names may be shared, at most {MOST_SHARED}"
    paths = collections.defaultdict(list)
    for path in tree.files(root):
        if path.endswith((".hpp", ".h")):
            paths[os.path.basename(path)].append(path)
    for name, found in sorted(paths.items()):
        if len(found) > 1 and name not in shared:
            yield f"{name}: the name of {len(found)} headers: {', '.join(found)}"


def check(root, shared=None):
    return [*large_folders(root), *duplicate_headers(root, SHARED if shared is None else shared)]


if __name__ == "__main__":
    tree.main(check)
