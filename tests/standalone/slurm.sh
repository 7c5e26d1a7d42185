#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# srun starts ranks, from the command line and from a batch script. The script's own shell is not a rank.
# shellcheck source=tests/standalone/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "needs root to start Slurm"
PATH=$PATH:/usr/sbin:/sbin
needs slurmctld slurm-wlm
needs munged munge
here=$(dirname "$0")/slurm_here.sh
export SLURM_CONF=$scratch/slurm/slurm.conf
trap 'bash "$here" down "$scratch/slurm"; rm -rf "$scratch"' EXIT
bash "$here" up "$scratch/slurm" 2 || fail "Slurm did not start"

places=$(for r in 0 1 2 3; do echo "rank $r of 4, local $r of 4, cross 0 of 1"; done)
try timeout 60 srun -N 1 -n 4 "$rank" identity sum rounds=2
expect "exit code under srun" "$code" 0
expect "places under srun" "$(sort <<<"$out")" "$places"
try timeout 60 srun -N 1 -n 4 --mpi=pmi2 "$rank" identity sum
expect "exit code under srun with PMI" "$code" 0
expect "places under srun with PMI" "$(sort <<<"$out")" "$places"

# Two nodes are two hosts. Slurm's PMI tells the ranks where rank 0 is.
try timeout 60 srun -N 2 -n 4 --ntasks-per-node=2 --mpi=pmi2 "$STANDALONE_MEETING" rounds=2
expect "exit code of two nodes" "$code" 0
expect "hosts of two nodes" "$(sort <<<"$out")" "rank 0/4 local 0/2 cross 0/2 epoch 2 hosts [0,1] [2,3]
rank 1/4 local 1/2 cross 0/2 epoch 2 hosts [0,1] [2,3]
rank 2/4 local 0/2 cross 1/2 epoch 2 hosts [0,1] [2,3]
rank 3/4 local 1/2 cross 1/2 epoch 2 hosts [0,1] [2,3]"
# PMIx tells them too. Slurm supports it with one node per machine only.
# shellcheck disable=SC2016 # expanded by each task's shell
try timeout 60 srun -N 1 -n 3 --mpi=pmix bash -c 'HORO_HOST_KEY=$((SLURM_PROCID % 2)) exec "$0"' "$STANDALONE_MEETING"
expect "exit code with PMIx" "$code" 0
expect "hosts with PMIx" "$(sort <<<"$out")" "rank 0/3 local 0/2 cross 0/2 epoch 1 hosts [0,2] [1]
rank 1/3 local 0/1 cross 1/2 epoch 1 hosts [0,2] [1]
rank 2/3 local 1/2 cross 0/1 epoch 1 hosts [0,2] [1]"
try timeout 60 srun -N 2 -n 2 --mpi=none "$STANDALONE_MEETING"
expect_in "the error without PMI" "$err" "or use 'srun --mpi=pmix'"

# A rank is lost. srun does not stop the other tasks.
try timeout 60 srun -N 1 -n 3 --no-kill --kill-on-bad-exit=0 "$rank" sum only=1 kill lose
for r in 0 2; do
  expect_in "rank $r's words" "$out" "rank $r: peer_lost: rank 1 on "
  expect_in "rank $r's words" "$out" "was lost: killed by signal 9 (SIGKILL)"
done

# In a batch script, the shell is a job of one rank, and its step is another job.
cat >"$scratch/batch" <<BATCH
#!/bin/bash
"$rank" identity sum
srun -N 1 -n 2 "$rank" identity sum
WORLD_SIZE=2 srun -N 1 -n 2 "$rank" identity sum
echo the end
BATCH
try sbatch -N 1 -n 2 -o "$scratch/batch.out" "$scratch/batch"
expect "exit code of sbatch" "$code" 0
for ((i = 0; i < 300; i++)); do
  grep -q "the end" "$scratch/batch.out" 2>/dev/null && break
  sleep 0.1
done
expect "what the batch job says" "$(sort "$scratch/batch.out")" "$(sort <<'WANTED'
rank 0 of 1, local 0 of 1, cross 0 of 1
rank 0 of 2, local 0 of 2, cross 0 of 1
rank 1 of 2, local 1 of 2, cross 0 of 1
rank 0 of 2, local 0 of 2, cross 0 of 1
rank 1 of 2, local 1 of 2, cross 0 of 1
the end
WANTED
)"
