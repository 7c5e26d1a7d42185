#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An elastic job in a job of a real Slurm from which `scontrol update NumNodes=` takes nodes away.
# shellcheck disable=SC2016 # conditions of eventually are expanded later
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/hosts/slurm_lib.sh
. "$HORO_SOURCE/tests/hosts/slurm_lib.sh"
on_hosts 3
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"

start_slurm 3
# start_in_slurm: starts the training on three nodes. $job is its process, and $number Slurm's number of it.
start_in_slurm() {
  rm -rf "$folder"
  mkdir "$folder"
  : >"$scratch/out"
  salloc -Q --no-kill -N 3 -w 'h[1-3]' --ntasks-per-node=1 horo run --min-np 1 "$ELASTIC_TRAINEE" "$folder" 0 20 \
    >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  until_out 'generation 1, rank . of 3' 3
  number=$(squeue -h -o %i)
}
# take NODES: leaves the job so many of its first nodes. scontrol writes scripts for the job's shell into its folder. Without a
# database, Slurm accepts one such change for each job.
take() { (cd "$scratch" && scontrol update JobId="$number" NumNodes="$1") >"$scratch/scontrol" 2>&1 || fail "scontrol: $(<"$scratch/scontrol")"; }

# Horo was told nothing before: Slurm kills the ranks of the last node, and the others go on.
start_in_slurm
take 2
until_out 'generation 2, rank . of 2' 2
eventually "that Slurm offers the node no more" 'grep -q "host h3 is no longer offered" "$scratch/err"'
nothing_ours h3
touch "$folder/stop"
finish
expect "exit code ($err)" "$code" 0
expect_in "the lost rank" "$err" "generation 2: 2 ranks, without worker 2 on host h3"
nothing_ours h1 h2 h3

# The user lets the ranks of the node end their step before: nothing is lost.
start_in_slurm
ask horo shrink h3
expect "exit code of horo shrink ($err)" "$code" 0
until_out 'generation 2, rank . of 2' 2
until_out 'worker 2: removed$'
take 2
eventually "that Slurm has taken the node" '[ "$(squeue -h -j "$number" -o %D)" = 2 ]'
nothing_ours h3
[ -n "$(ours h2)" ] || fail "a rank of another node has ended"
touch "$folder/stop"
finish
expect "exit code ($err)" "$code" 0
expect_in "the rank that has left" "$err" "generation 2: 2 ranks, without worker 2 on host h3 (host h3 was asked to leave"
nothing_ours h1 h2 h3
