#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A torch.distributed script without any knowledge of Horo runs over three hosts with two ranks each, and once more with a
# rank that dies.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
"$HOSTS_PYTHON" -c 'import torch.distributed' 2>/dev/null || skip "$HOSTS_PYTHON has no torch"
on_hosts 3

cat >"$scratch/train.py" <<'PY'
import os, sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
if "--die" in sys.argv and rank == 3:
    os.kill(os.getpid(), 11)
sums = torch.full((1000,), float(rank))
dist.all_reduce(sums)
assert sums[0].item() == sum(range(size)) and sums[-1].item() == sum(range(size)), sums
names = [None] * size
dist.all_gather_object(names, os.uname().nodename)
if rank == 0:
    print(size, *names)
dist.destroy_process_group() # without this call, torch's threads may still run while a rank exits, which then aborts
PY
try timeout 100 horo run -H h1:2,h2:2,h3:2 --tag off "$HOSTS_PYTHON" "$scratch/train.py"
expect "exit code" "$code" 0
expect "ranks and their hosts" "$out" "6 h1 h1 h2 h2 h3 h3"
nothing_left h1 h2 h3
# The launcher's host is one of the hosts, but rank 0 runs on another.
try timeout 100 horo run -H h2:1,head:1,h1:2 --tag off "$HOSTS_PYTHON" "$scratch/train.py"
expect "ranks and their hosts" "$out" "4 h2 head h1 h1"

try timeout 100 horo run -H h1:2,h2:2,h3:2 --tag off "$HOSTS_PYTHON" "$scratch/train.py" --die
expect "exit code" "$code" 139
expect_in "the report" "$err" "rank 3 on h2 failed first: killed by signal 11 (SIGSEGV)"
nothing_left h1 h2 h3
exit 0
