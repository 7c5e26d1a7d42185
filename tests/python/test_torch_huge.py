# SPDX-License-Identifier: Apache-2.0
import pytest

JOB = "torch_huge"
RANKS = (2,)
NEEDED_GIB = 14


@pytest.fixture(scope="module")
def room():
    with open("/proc/meminfo") as file:
        kilobytes = dict(line.split(":") for line in file)["MemAvailable"].split()[0]
    if int(kilobytes) < NEEDED_GIB << 20:
        pytest.skip(f"less than {NEEDED_GIB} GiB of memory are free")


def test_job(room, checked, ranks, check):
    checks = checked(JOB, ranks)
    if check == "clean_end":
        checks.require_clean_end()
    else:
        checks.require(check)
