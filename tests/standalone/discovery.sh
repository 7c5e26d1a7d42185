#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo discover inside jobs of a real Slurm: salloc, a batch script, a step and a heterogeneous job.
# shellcheck source=tests/standalone/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "needs root to start Slurm"
PATH=$PATH:/usr/sbin:/sbin
needs slurmctld slurm-wlm
needs munged munge
here=$(dirname "$0")/slurm_here.sh
export SLURM_CONF=$scratch/slurm/slurm.conf
trap 'bash "$here" down "$scratch/slurm"; rm -rf "$scratch"' EXIT
bash "$here" up "$scratch/slurm" 4 || fail "Slurm did not start"

cat >"$scratch/hosts.py" <<'PY'
import json, sys
print(*(f"{h['name']}:{h['slots']}" for h in json.load(sys.stdin)["hosts"]))
PY

# hosts WHAT WANTED COMMAND...: the hosts that horo discover finds inside COMMAND. Virtual nodes have no addresses, so it
# ends with 1.
hosts() {
  local what=$1 wanted=$2
  shift 2
  try timeout 60 "$@" horo discover --json
  expect "hosts of $what" "$(python3 "$scratch/hosts.py" <<<"$out")" "$wanted"
  expect_in "source of $what" "$out" '"source": "Slurm job '
}

hosts "salloc by nodes" "h1:1 h2:1" salloc -Q -N 2
hosts "salloc by tasks per node" "h1:3 h2:3" salloc -Q -N 2 --ntasks-per-node=3
hosts "salloc by tasks" "h1:4 h2:1" salloc -Q -n 5
hosts "salloc of whole nodes" "h1:4 h2:4 h3:4" salloc -Q -N 3 --exclusive
hosts "a heterogeneous job" "h1:2 h2:2 h3:2" salloc -Q -N 1 -n 2 : -N 2 --ntasks-per-node=2
hosts "a step of a job" "h1:2 h2:2" salloc -Q -N 2 --ntasks-per-node=2 srun -N 1 -n 1

# The plan has exactly np ranks, and --ranks-per-host may exceed the number of tasks of the job.
try timeout 60 salloc -Q -N 2 --ntasks-per-node=1 -c 4 horo run --ranks-per-host 2 --dry-run true
expect "exit code" "$code" 0
expect_in "plan" "$out" "host       h2: 2 ranks, 2-3"

cat >"$scratch/batch" <<BATCH
#!/bin/bash
export PATH="$PATH"
horo run --dry-run true
echo the end
BATCH
try sbatch -N 2 --ntasks-per-node=2 -o "$scratch/batch.out" "$scratch/batch"
expect "exit code of sbatch" "$code" 0
for ((i = 0; i < 300; i++)); do
  grep -q "the end" "$scratch/batch.out" 2>/dev/null && break
  sleep 0.1
done
expect_in "plan of the batch script" "$(cat "$scratch/batch.out")" "host       h1: 2 ranks, 0-1"
expect_in "plan of the batch script" "$(cat "$scratch/batch.out")" "host       h2: 2 ranks, 2-3"
