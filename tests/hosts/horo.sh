#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# libhoro over several hosts, started from this machine: a reduction, and the error of the other ranks when one dies.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
export PYTHONPATH=$HORO_BIN/../python
"$HOSTS_PYTHON" -c 'import torch' 2>/dev/null || skip "$HOSTS_PYTHON has no torch"
on_hosts 2

cat >"$scratch/train.py" <<'PY'
import os, signal, sys
import torch
import horo.torch as horo

horo.init()
rank, size = horo.rank(), horo.size()
for step in range(20):
    sums = horo.allreduce(torch.full((1000,), float(rank + step)), op=horo.Sum, name="sum")
    assert sums[0].item() == sums[-1].item() == sum(range(size)) + size * step, sums
    if "--die" in sys.argv and rank == 3 and step == 10:
        os.kill(os.getpid(), signal.SIGKILL)
print(rank, size, horo.local_rank(), horo.cross_rank(), os.uname().nodename)
horo.shutdown()
PY
try timeout 100 horo run -H h1:2,h2:2 --tag off "$HOSTS_PYTHON" "$scratch/train.py"
expect "exit code" "$code" 0
expect "ranks" "$(sort <<<"$out")" "0 4 0 0 h1
1 4 1 0 h1
2 4 0 1 h2
3 4 1 1 h2"
nothing_left h1 h2
# The launcher's host is one of the hosts, but rank 0 runs on another.
try timeout 100 horo run -H h1:1,head:2 --tag off "$HOSTS_PYTHON" "$scratch/train.py"
expect "ranks with this machine" "$(sort <<<"$out")" "0 3 0 0 h1
1 3 0 1 head
2 3 1 0 head"

try timeout 100 horo run -H h1:2,h2:2 --tag off "$HOSTS_PYTHON" "$scratch/train.py" --die
expect "exit code" "$code" 137
expect_in "the report" "$err" "rank 3 on h2 failed first: killed by signal 9 (SIGKILL)"
expect_in "what another host's rank says" "$err" "rank 3 on h2"
nothing_left h1 h2
exit 0
