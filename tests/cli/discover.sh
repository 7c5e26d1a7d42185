#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo discover prints the hosts that can run ranks, the source that named them, and the hardware of this machine.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

try horo discover
expect "exit code" "$code" 0
expect "standard error" "$err" ""
expect_in "survey" "$out" "hosts from this machine: no hosts are given"
expect_in "survey" "$out" "cores      "
expect_in "survey" "$out" "127.0.0.1/8"

# A process sees only the hardware that it may use: one hardware thread counts as one core.
cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
try taskset -c "$cpu" horo discover --json
expect "exit code" "$code" 0
python3 - "$scratch/out" "$cpu" <<'PY' || fail "the survey does not show exactly one core"
import json, sys
survey = json.load(open(sys.argv[1]))
machine = survey["machine"]
assert survey["slots"] == 1 and survey["hosts"][0]["here"], survey
assert machine["cores"] == 1 and [c for n in machine["nodes"] for c in n["cores"]] == [sys.argv[2]], machine
assert any("127.0.0.1/8" in i["addresses"] and i["loopback"] for i in machine["interfaces"]), machine
assert machine["shared_memory"]["total_bytes"] > 0
PY

# The route to a host comes from the kernel, not from the names of interfaces.
try horo discover -H localhost:2,127.9.9.9:1 --json
expect "exit code" "$code" 0
expect_in "hosts" "$out" '"slots": 3'
printf 'localhost slots=3 # here\r\n' >"$scratch/hosts"
try horo discover --hostfile "$scratch/hosts"
expect_in "survey" "$out" "hosts from hostfile '$scratch/hosts': it was given"
printf '#!/bin/sh\necho localhost\n' >"$scratch/script"
chmod +x "$scratch/script"
try horo discover --host-discovery-script "$scratch/script" --slots-per-host 5 --json
expect_in "hosts" "$out" '"slots": 5'
# A script's first word is searched for in PATH, as a shell does.
try horo discover --host-discovery-script "cat $scratch/hosts" --json
expect_in "hosts" "$out" '"slots": 3'
try horo run -np 1 --host-discovery-script "no-such-program 1" true
expect_in "error" "$err" "there is no program 'no-such-program': give its path, or put its folder into PATH"

# A host without a route is named, and the exit code shows the failure.
try horo discover -H nowhere.invalid:2
expect "exit code" "$code" 1
expect_in "survey" "$out" "'nowhere.invalid' has no address"

# An allocation that cannot be read is not a usage error, and horo does not fall back to this machine.
SLURM_JOB_ID=7 try horo discover
expect "exit code" "$code" 1
expect "standard output" "$out" ""
expect_in "error" "$err" "Slurm job 7: neither SLURM_JOB_NODELIST nor SLURM_NODELIST is set; give the hosts with -H"
SLURM_JOB_ID=7 try horo run -np 2 true
expect "exit code of horo run" "$code" 1
expect_in "error of horo run" "$err" "horo run: Slurm job 7: neither SLURM_JOB_NODELIST nor"
printf '#!/bin/sh\necho broken >&2; exit 4\n' >"$scratch/script"
try horo run -np 2 --host-discovery-script "$scratch/script" true
expect "exit code of horo run" "$code" 1
expect "error of horo run" "$err" "horo run: discovery script '$scratch/script': it ended with exit code 4: broken"
printf '#!/bin/sh\nsleep 100\n' >"$scratch/script"
try horo run -np 2 --host-discovery-script "$scratch/script" --discovery-timeout 300ms true
expect_in "error of horo run" "$err" "discovery script '$scratch/script': it did not end in time"

# Discovery lists the hosts that a run would use, and a flag has priority over the allocation.
export SLURM_JOB_ID=7 SLURM_JOB_NODELIST='n[1-2]' SLURM_TASKS_PER_NODE='2(x2)' SLURM_NTASKS=4
try horo run --dry-run true
expect "exit code" "$code" 0
expect_in "plan" "$out" "hosts      Slurm job 7: SLURM_JOB_ID is set; nodes from SLURM_JOB_NODELIST, slots from SLURM_TASKS_PER_NODE"
expect_in "plan" "$out" "host       n2: 2 ranks, 2-3"
refused "Slurm job 7: 5 slots wanted, 4 available (n1:2, n2:2)" horo run -np 5 true
try horo run -np 2 -H localhost:2 --tag off sh -c 'echo here'
expect "standard output" "$out" "here
here"

unset SLURM_JOB_ID
refused "unknown option '--np'" horo discover --np 2
refused "exclude each other" horo discover -H a --hostfile b
refused "-H: column 3: an empty entry" horo discover -H a,,b
refused "unexpected argument 'x'" horo discover x

# Whatever the limit of descriptors, the survey is whole, or an error names the limit and what to do. horo run's errors do, too.
# What this script has inherited beyond its three streams would count.
for fd in "/proc/$$/fd/"*; do
  fd=${fd##*/}
  [ "$fd" -le 2 ] || [ "$fd" = 255 ] || eval "exec $fd>&-"
done
for limit in 4 5 6 7 8 9 12 16; do
  try prlimit --nofile=$limit horo discover
  [ "$code" = 0 ] || expect_in "error of horo discover with $limit descriptors" "$err" "may have $limit open descriptors, and none is left; raise ulimit -n"
  [ "$code" != 0 ] || expect_in "survey with $limit descriptors" "$out" "127.0.0.1/8"
  try prlimit --nofile=$limit horo discover --host-discovery-script "$scratch/script"
  expect "exit code with a script and $limit descriptors" "$code" 1
  expect_in "error of a script with $limit descriptors" "$err" "may have $limit open descriptors, and none is left; raise ulimit -n"
  try prlimit --nofile=$limit horo run -np 1 true
  [ "$code" = 0 ] || expect_in "error of horo run with $limit descriptors" "$err" "raise ulimit -"
done
