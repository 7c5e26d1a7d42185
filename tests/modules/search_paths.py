# SPDX-License-Identifier: Apache-2.0
"""Checks the search paths of the build tree's programs and libraries: an empty or relative part would mean
the working directory, where anybody may have put something.

usage: search_paths.py BUILD
"""

import os
import re
import subprocess
import sys


def binaries(build):
    for folder in ("bin", "lib", "lib/horo"):
        for name in sorted(os.listdir(os.path.join(build, folder))):
            path = os.path.join(build, folder, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path


def main(build):
    looked_at, faults = 0, []
    for path in binaries(build):
        words = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
        looked_at += 1
        for places in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", words):
            faults += [f"{path}: '{places}'" for place in places.split(":") if not place.startswith(("/", "$ORIGIN"))]
    if looked_at < 5:
        faults.append(f"only {looked_at} binaries in {build}")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
