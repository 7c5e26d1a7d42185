#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An elastic job in a job of PBS from which hosts are released. pbs_release_nodes is a stand-in, written from its documentation
# (tests/standins).
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 3
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"
TRAINEE=$ELASTIC_TRAINEE
for variable in "${!PBS_@}"; do unset "$variable"; done
export PATH=$HORO_SOURCE/tests/standins:$PATH PBS_JOBID=12.head PBS_NODEFILE=$scratch/nodes

printf 'h1\nh1\nh2\nh3\n' >"$PBS_NODEFILE"
begin --min-np 1
until_out 'generation 1, rank . of 4' 4
pbs_release_nodes -j 12.head h2 || fail "h2 was not released"
until_out 'generation 2, rank . of 3' 3
pbs_release_nodes -a || fail "the other hosts were not released"
until_out 'generation 3, rank . of 2' 2
until_out ': removed$' 2
touch "$folder/stop"
finish
expect "exit code ($err)" "$code" 0
expect_in "the line about h2" "$err" "worker 2 on host h2 (host h2 is no longer offered)"
expect "losses" "$(grep -c 'killed by' <<<"$err")" 0
nothing_left h1 h2 h3

# A node file that disappears, or names no host, leaves the job its hosts, with one warning.
printf 'h1\nh2\n' >"$PBS_NODEFILE"
begin --min-np 1
until_out 'generation 1, rank . of 2' 2
: >"$PBS_NODEFILE"
eventually "a warning" 'grep -q "the last known hosts stay" "$scratch/err"'
rm "$PBS_NODEFILE"
printf 'h1\n' >"$scratch/next"
sleep 1.5
mv "$scratch/next" "$PBS_NODEFILE"
until_out 'generation 2, rank 0 of 1'
touch "$folder/stop"
finish
expect "exit code ($err)" "$code" 0
expect "warnings" "$(grep -c 'the last known hosts stay' <<<"$err")" 1
nothing_left h1 h2 h3
exit 0
