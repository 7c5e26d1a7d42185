#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The jobs in tests/python/jobs, which check the Python packages on one host, run on two hosts.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
"$HOSTS_PYTHON" -c 'import torch, numpy' 2>/dev/null || skip "$HOSTS_PYTHON has no torch, or no numpy"
on_hosts 2

for job in torch_collectives torch_rows torch_sets torch_optimizer numpy_collectives; do
  mkdir "$scratch/$job"
  OMP_NUM_THREADS=1 HORO_ARENA_SIZE=256MiB try timeout 150 horo run -H h1:2,h2:2 "$HOSTS_PYTHON" \
    "$HORO_SOURCE/tests/python/support/checks.py" "$HORO_SOURCE/tests/python/jobs/$job.py" "$scratch/$job"
  expect "exit code of $job" "$code" 0
  wanted=$("$HOSTS_PYTHON" -c 'import sys; sys.path.insert(0, sys.argv[1]); import checks; print(len(checks.check_names(sys.argv[2])))' \
    "$HORO_SOURCE/tests/python/support" "$HORO_SOURCE/tests/python/jobs/$job.py")
  for r in 0 1 2 3; do
    expect "checks of $job that rank $r passed" \
      "$("$HOSTS_PYTHON" -c 'import json, sys; print(len(json.load(open(sys.argv[1]))))' "$scratch/$job/$r.json")" "$wanted"
  done
done
nothing_left h1 h2
exit 0
