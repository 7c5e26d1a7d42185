# SPDX-License-Identifier: Apache-2.0
"""Checks the dynamic symbols of libhoro and its modules: no export may replace a symbol that another library needs.

usage: symbols.py LIB_FOLDER
"""

import glob
import os
import subprocess
import sys


def exported(path):
    """The symbols that a library exports, without the names of its version script's nodes."""
    text = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    fields = (line.split() for line in text.splitlines())
    return {name.split("@")[0] for _, kind, name in fields if kind != "A"}


def main(folder):
    faults = []
    library = exported(os.path.join(folder, "libhoro.so"))
    strangers = {name for name in library if not name.startswith("horo_")}
    if strangers or "horo_init" not in library:
        faults.append(f"libhoro.so exports {sorted(strangers)[:5]}")
    modules = glob.glob(os.path.join(folder, "horo", "horo-backend-*.so"))
    for path in modules:
        names = exported(path)
        if names != {"horo_backend_module"}:
            faults.append(f"{path} exports {sorted(names)[:5]} and not just horo_backend_module")
    for fault in faults:
        print(fault)
    print(f"libhoro.so and {len(modules)} modules")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
