#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job of LSF whose hosts were allocated by CSM: jsrun starts the agents, and with --jsrun the ranks. The programs of LSF,
# CSM and JSM are stand-ins, written from their documentation (tests/standins).
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 2
export HOSTS_ON=$HORO_SOURCE/tests/hosts/hosts.sh PATH=$HORO_SOURCE/tests/standins:$PATH
for variable in "${!LSB_@}" "${!CSM_@}" "${!JSM_@}" "${!OMPI_@}" "${!PMI@}"; do unset "$variable"; done
mv /run/home/.ssh/id_ed25519 "$scratch/away"
# CSM's own folder, in the namespace of this test only.
mount -t tmpfs tmpfs /opt || fail "cannot mount /opt"
mkdir -p /opt/ibm/csm/bin
cp "$HORO_SOURCE"/tests/standins/csm_* /opt/ibm/csm/bin/
export LSB_JOBID=77 CSM_ALLOCATION_ID=9 LSB_MCPU_HOSTS="head 1 h1 8 h2 8" JSRUN_WORDS=$scratch/words TMPDIR=$scratch
scratch_files() { find "$scratch" -mindepth 1 -name 'horo-*' | wc -l; }

# The launch node is not a host. The slots of a node are its GPUs.
try timeout 60 horo run --dry-run true
expect "exit code of the plan ($err)" "$code" 0
expect_in "the plan" "$out" "starter    jsrun"
expect_in "the plan" "$out" "; by jsrun (a host of LSF job 77, whose hosts are of CSM allocation 9)"
expect_in "the plan" "$out" "slots from their GPUs"
try timeout 60 horo run --tag off sh -c 'echo "$RANK $(hostname)"'
expect "exit code ($err)" "$code" 0
expect "ranks" "$(sort <<<"$out")" "0 h1
1 h1
2 h2
3 h2"
expect "files that stay" "$(scratch_files)" 0
nothing_left h1 h2
try timeout 60 horo run --tag off sh -c '[ "$RANK" = 3 ] && exit 5; sleep 1000'
expect "exit code" "$code" 5
nothing_left h1 h2

# With --jsrun, jsrun starts the ranks.
try timeout 60 horo run --jsrun -np 3 --dry-run true
expect "exit code of the plan ($err)" "$code" 0
expect_in "the plan" "$out" "starter    jsrun"
expect "jsrun's words" "$(sed -n 's/^jsrun  *//p' <<<"$out")" \
  "$HORO_SOURCE/tests/standins/jsrun --erf_input ERF $HORO_BIN/horo-agent --dial-in"
# (6 cores - 2 kept) x threads, for the two ranks of h1.
threads=$((4 * $(LC_ALL=C lscpu | sed -n 's/^Thread(s) per core: *//p')))
each=$((threads / 2))
expect_in "the ERF" "$out" "overlapping_rs: allow
cpu_index_using: logical

rank: 0: { hostname: h1; cpu: {0-$((each - 1))} ; gpu: * ; mem: * }
rank: 1: { hostname: h1; cpu: {$each-$((threads - 1))} ; gpu: * ; mem: * }

rank: 2: { hostname: h2; cpu: {0-$((each - 1))} ; gpu: * ; mem: * }"
try timeout 60 horo run --jsrun --tcp --mpi-args='-gpu -x "A B"' -np 1 --dry-run true
expect_in "jsrun's words" "$out" "--smpiargs '-tcp -gpu -x \"A B\"' $HORO_BIN/horo-agent"
try timeout 60 horo run --jsrun --binding-args='--nrs 2 -b none' -np 1 --dry-run true
expect_in "jsrun's words" "$out" "jsrun --nrs 2 -b none $HORO_BIN/horo-agent --dial-in"

GREETING='it is "me"' try timeout 60 horo run --jsrun --tag off \
  sh -c 'echo "$RANK $LOCAL_RANK $(hostname) $HORO_CONTROLLER ${HORO_LAUNCHER-none} $GREETING"'
expect "exit code ($err)" "$code" 0
expect "ranks" "$(sort <<<"$out")" '0 0 h1 mpi none it is "me"
1 1 h1 mpi none it is "me"
2 0 h2 mpi none it is "me"
3 1 h2 mpi none it is "me"'
expect "files that stay" "$(scratch_files)" 0
nothing_left h1 h2

# The agents report the first failure; jsrun reports it only after all ranks have ended.
try timeout 60 horo run --jsrun sh -c '[ "$RANK" = 2 ] && exit 7; sleep 1000'
expect "exit code" "$code" 7
expect_in "the report" "$err" "rank 2 on h2 failed first: exit code 7"
expect_in "the report" "$err" "ranks 0, 1 and 3 ended afterwards: killed by signal 15"
nothing_left h1 h2
: >"$scratch/out"
horo run --jsrun --tag off sh -c 'trap "echo asked; exit 0" TERM; echo here; sleep 1000 & wait' >"$scratch/out" 2>"$scratch/err" &
eventually "four ranks" '[ "$(grep -c here "$scratch/out")" = 4 ]'
kill -TERM $!
wait $!
expect "exit code of a stopped job" "$?" 143
expect "ranks that were asked" "$(grep -c asked "$scratch/out")" 4
nothing_left h1 h2
: >"$scratch/out"
horo run --jsrun --tag off sh -c 'echo here; sleep 1000' >"$scratch/out" 2>"$scratch/err" &
eventually "four ranks" '[ "$(grep -c here "$scratch/out")" = 4 ]'
kill -KILL $!
wait $!
nothing_left h1 h2

# The scripts of examples/lsf for such machines.
for script in csm jsrun; do
  sed 's|^command=.*|command=(hostname)|' "$HORO_SOURCE/examples/lsf/$script.sh" >"$scratch/$script"
  try timeout 60 bash "$scratch/$script"
  expect "exit code of $script.sh ($err)" "$code" 0
  expect "hosts of $script.sh" "$(grep -o 'h[12]$' <<<"$out" | sort | uniq -c | tr -s ' ')" " 2 h1
 2 h2"
done

# Requests that cannot be met.
try timeout 60 horo run --jsrun -H h1:$((threads + 1)) true
expect "exit code" "$code" 2
expect_in "the error" "$err" "$((threads + 1)) ranks on host 'h1', which has $threads hardware threads for the job"
try timeout 60 env -u CSM_ALLOCATION_ID horo run --jsrun -np 1 true
expect "exit code" "$code" 2
expect_in "the error" "$err" "CSM_ALLOCATION_ID is not set"
mv /opt/ibm/csm/bin/csm_node_attributes_query "$scratch/"
try timeout 60 horo run --jsrun -np 1 -H h1:1 true
expect "exit code" "$code" 1
expect_in "the error" "$err" "CSM allocation 9: "
exit 0
