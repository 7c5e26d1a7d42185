#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An elastic job in a job of a real Slurm that gets a further node, and then loses one that fails.
# shellcheck disable=SC2016 # conditions of eventually are expanded later
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/hosts/slurm_lib.sh
. "$HORO_SOURCE/tests/hosts/slurm_lib.sh"
on_hosts 3
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"

start_slurm 3

mkdir "$folder"
: >"$scratch/out"
salloc -Q --no-kill -N 2 -w 'h[1-2]' --ntasks-per-node=1 horo run --min-np 1 "$ELASTIC_TRAINEE" "$folder" 0 20 \
  >"$scratch/out" 2>"$scratch/err" </dev/null &
job=$!
until_out 'generation 1, rank . of 2' 2
number=$(squeue -h -o %i)

# Another job gives its node to this one. The ranks of the new node are started by srun, too.
salloc -Q -N 1 -w h3 --no-shell --dependency="expand:$number" >"$scratch/salloc" 2>&1 || fail "no second job: $(<"$scratch/salloc")"
scontrol update JobId="$((number + 1))" NumNodes=0 >"$scratch/scontrol" 2>&1 || fail "no node was given: $(<"$scratch/scontrol")"
until_out 'generation 2, rank . of 3' 3
[ -n "$(ours h3)" ] || fail "no rank runs on the new node"

# A node fails: Slurm takes it out of the job, which goes on without it.
scontrol update NodeName=h2 State=DOWN Reason=test
until_out 'generation 3, rank . of 2' 2
eventually "that Slurm offers the node no more" 'grep -q "host h2 is no longer offered" "$scratch/err"'
touch "$folder/stop"
finish
expect "exit code ($err)" "$code" 0
expect_in "the new rank" "$err" "generation 2: 3 ranks, with worker 2 on host h3"
expect_in "the lost one" "$err" "generation 3: 2 ranks, without worker 1 on host h2"
nothing_ours h1 h2 h3
