#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A plain torch.distributed script runs unchanged, whatever the name of this machine.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

cat >"$scratch/plain.py" <<'PY'
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(4) * (dist.get_rank() + 1)
dist.all_reduce(x)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has {x.tolist()[0]}", flush=True)
dist.destroy_process_group()
PY
tried=0
for python in /usr/bin/python3 python3; do
  "$python" -c 'import torch' 2>/dev/null || continue
  tried=$((tried + 1))
  try timeout 100 horo run -np 2 --tag off "$python" "$scratch/plain.py"
  expect "exit code under $python" "$code" 0
  expect "output under $python" "$(sort <<<"$out")" "rank 0 of 2 has 3.0
rank 1 of 2 has 3.0"
done
if [ "$tried" -eq 0 ]; then
  echo "skipped: no Python here has torch"
  exit 77
fi
