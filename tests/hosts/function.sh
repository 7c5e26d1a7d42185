#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo.run() over several hosts calls a function of a program that exists on this machine only, and returns its results and
# exceptions.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
"$HOSTS_PYTHON" -c 'import numpy, cloudpickle' 2>/dev/null || skip "$HOSTS_PYTHON has no numpy, or no cloudpickle"
on_hosts 2

mkdir "$scratch/mine"
mount -t tmpfs tmpfs "$scratch/mine" || fail "cannot make a folder that other hosts do not see"
trap 'umount -l "$scratch/mine"; rm -rf "$scratch"' EXIT
cat >"$scratch/mine/program.py" <<'PY'
import os, signal, socket
import horo

factor = 7


def work(offset, fail=None):
    import horo.numpy as hvd, numpy

    hvd.init()
    if fail == "raise" and hvd.rank() == 3:
        raise KeyError("only there")
    if fail == "kill" and hvd.rank() == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    total = hvd.allreduce(numpy.ones(1000), op=hvd.Sum)
    return os.uname().nodename, hvd.rank() * factor + offset, total[-1].item()


def go(**options):
    return horo.run(work, num_proc=4, start_timeout=30, **{"args": (1,), **options})


# No host can resolve the name of this machine: ranks reach it by the launcher's address.
socket.getfqdn = socket.gethostname = lambda: "nowhere.invalid"
wanted = [("h1", 1, 4.0), ("h1", 8, 4.0), ("h2", 15, 4.0), ("h2", 22, 4.0)]
found = go(hosts="h1:2,h2:2")
assert found == wanted, found
with open("hosts", "w") as file:
    file.write("h2 slots=2\nh1 slots=2\n")
found = go(hostfile=os.path.abspath("hosts"))
assert [host for host, _, _ in found] == ["h2", "h2", "h1", "h1"], found
found = go(hosts="h1:3,head:1")
assert [host for host, _, _ in found] == ["h1", "h1", "h1", "head"], found

# The results are larger than a message of the launcher may be.
sizes = [len(one) for one in horo.run(lambda: bytes(80 << 20), hosts="h1:1,h2:1", num_proc=2)]
assert sizes == [80 << 20] * 2, sizes

try:
    go(hosts="h1:2,h2:2", kwargs={"fail": "raise"})
    raise SystemExit("no error")
except horo.RankError as error:
    assert (error.rank, error.host) == (3, "h2") and "in work" in str(error), error
    assert isinstance(error.__cause__, KeyError), error.__cause__
try:
    go(hosts="h1:2,h2:2", kwargs={"fail": "kill"})
    raise SystemExit("no error")
except horo.HoroError as error:
    print(error)

# The private key is given by an option.
home = "/run/home/.ssh/id_ed25519"
os.rename(home, "/run/home/other")
try:
    go(hosts="h1:2,h2:2")
    raise SystemExit("no error")
except horo.HoroError as error:
    assert "exit code" in str(error), error
found = go(hosts="h1:2,h2:2", ssh_identity_file="/run/home/other", ssh_port=22, verbose=True)
assert found == wanted, found
os.rename("/run/home/other", home)
print("all is well")
PY
cd /var/tmp || fail "no /var/tmp"
on h1 test ! -e "$scratch/mine/program.py" || fail "the other hosts see the program"
cd "$scratch" || fail "no scratch folder"
try timeout 250 "$HOSTS_PYTHON" "$scratch/mine/program.py"
expect "exit code" "$code" 0
expect "the last line" "$(tail -n 1 <<<"$out")" "all is well"
expect_in "what a kill is" "$out" "rank 2"
nothing_left h1 h2
exit 0
