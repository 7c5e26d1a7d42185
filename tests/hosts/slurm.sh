#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Inside a job of a real Slurm whose nodes are separate hosts: srun starts the agents, and no process stays.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/hosts/slurm_lib.sh
. "$HORO_SOURCE/tests/hosts/slurm_lib.sh"
on_hosts 2

start_slurm 2

try timeout 100 salloc -Q -N 2 --ntasks-per-node=2 horo run --dry-run true
expect_in "the plan" "$out" "starter    srun"
expect_in "the plan" "$out" "; by srun (a node of Slurm job 1)"
try timeout 100 salloc -Q -N 2 --ntasks-per-node=2 horo run --tag off \
  sh -c 'echo "$RANK $(hostname) $MASTER_ADDR ${HORO_RENDEZVOUS%:*}"'
expect "exit code" "$code" 0
expect "ranks" "$(sort <<<"$out")" "0 h1 10.83.0.1 10.83.0.254
1 h1 10.83.0.1 10.83.0.254
2 h2 10.83.0.1 10.83.0.254
3 h2 10.83.0.1 10.83.0.254"
nothing_ours h1 h2

# In a heterogeneous job, srun is given the component of each host.
try timeout 100 salloc -Q -N 1 -n 1 : -N 1 -n 2 horo run --tag off sh -c 'echo "$RANK $(hostname)"'
expect "exit code of a heterogeneous job ($err)" "$code" 0
expect "its ranks" "$(cut -d' ' -f1 <<<"$out" | sort | tr '\n' ' ')" "0 1 2 "
expect "its hosts" "$(cut -d' ' -f2 <<<"$out" | sort -u | tr '\n' ' ')" "h1 h2 "
nothing_ours h1 h2
# Without srun the nodes are reached by ssh, whose error is shown.
mkdir "$scratch/nosrun"
ln -s /usr/bin/* "$scratch/nosrun/" && rm -f "$scratch/nosrun/srun"
try timeout 100 salloc -Q -N 2 --ntasks-per-node=1 env PATH="$HORO_BIN:$scratch/nosrun" horo run --dry-run true
expect_in "the plan without srun" "$out" ": command 'srun' is not found in PATH)"

# A batch script, which runs on one of the hosts.
cat >"$scratch/batch" <<BATCH
#!/bin/bash
exec "$HORO_BIN/horo" run --tag off --verbose hostname
BATCH
try sbatch -N 2 --ntasks-per-node=1 -o "$scratch/batch.out" "$scratch/batch"
eventually "the batch job's end" 'grep -qs "ended well" "$scratch/batch.out"'
expect "what the batch job's ranks say" "$(grep -x 'h[12]' "$scratch/batch.out" | sort)" "h1
h2"
expect_in "what it says" "$(<"$scratch/batch.out")" "starter local, srun"

# horo top shows all ranks on the machine where horo run was started, without a login to any host.
rm -f "$scratch/stop"
salloc -Q -N 2 --ntasks-per-node=2 horo run "$HORO_BIN/../tests/stall_rank" reduce=one only=3 "until=$scratch/stop" reduce=gradient \
  >"$scratch/out" 2>"$scratch/err" &
job=$!
# shellcheck disable=SC2016 # evaluated there
eventually "all ranks in horo top" '[ "$(horo top --once 2>&1 | grep -c " waits for 3 .* gradient")" = 3 ]'
touch "$scratch/stop"
wait "$job" || fail "the job failed: $(cat "$scratch/err")"
nothing_ours h1 h2

# A rank fails; the launcher is killed; the step of one host is killed.
try timeout 100 salloc -Q -N 2 --ntasks-per-node=1 horo run --tag off sh -c '[ "$RANK" = 1 ] && exit 5; sleep 1000'
expect "exit code" "$code" 5
expect_in "the report" "$err" "rank 1 on h2 failed first: exit code 5"
nothing_ours h1 h2
: >"$scratch/out"
salloc -Q -N 2 --ntasks-per-node=1 horo run --tag off sh -c 'echo here; sleep 1000' >"$scratch/out" 2>"$scratch/err" &
eventually "two ranks" '[ "$(grep -c here "$scratch/out")" = 2 ]'
kill -KILL "$(pgrep -f "horo-run .*sleep 1000" | head -n 1)"
wait $!
nothing_ours h1 h2
: >"$scratch/out"
salloc -Q -N 2 --ntasks-per-node=1 horo run --tag off sh -c 'echo here; sleep 1000' >"$scratch/out" 2>"$scratch/err" &
eventually "two ranks" '[ "$(grep -c here "$scratch/out")" = 2 ]'
on h2 pkill -KILL -x slurmstepd
wait $!
expect "exit code of a lost step" "$?" 125
expect_in "the report" "$(<"$scratch/err")" "host h2 was lost after "
nothing_ours h1 h2

try timeout 100 horo run -H h1:1 --starter slurm true
expect "exit code outside a job" "$code" 2
expect_in "the error" "$err" "--starter slurm outside a Slurm job"
exit 0
