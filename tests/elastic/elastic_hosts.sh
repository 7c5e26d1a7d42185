#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The hosts of an elastic job change while it runs.
# shellcheck source=tests/cli/lib.sh
. "$HORO_SOURCE/tests/cli/lib.sh"
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"

# A script grows and shrinks this machine: workers come at a step boundary, and go with exit code 0.
echo localhost:2 >"$scratch/slots"
begin -np 2 --min-np 1 --host-discovery-script "cat $scratch/slots | head -5"
until_out 'generation 1, rank . of 2' 2
echo localhost:3 >"$scratch/slots"
until_out 'generation 2, rank . of 3' 3
expect_in "the new worker's step" "$(grep 'worker 2: generation 2' "$scratch/out")" 'rank 2 of 3, step '
! grep -q 'worker 2: generation 2, rank 2 of 3, step 0$' "$scratch/out" || fail "the new worker began at step 0"
echo localhost:1 >"$scratch/slots"
until_out 'generation 3, rank 0 of 1'
until_out ': removed$' 2
touch "$folder/stop"
finish
expect "exit code" "$code" 0
expect_in "the oldest worker stays" "$out" 'worker 0: generation 3, rank 0 of 1'

# A script that fails later keeps the hosts, with one warning.
echo localhost:2 >"$scratch/slots"
begin -np 2 --min-np 1 --host-discovery-script "cat $scratch/slots"
until_out 'generation 1, rank . of 2' 2
rm "$scratch/slots"
for ((i = 0; i < 100; i++)); do
  [ "$(grep -c 'the last known hosts stay' "$scratch/err")" = 0 ] || break
  sleep 0.1
done
sleep 2.5
echo localhost:3 >"$scratch/slots"
until_out 'generation 2, rank . of 3' 3
touch "$folder/stop"
finish
expect "exit code after the script's failures" "$code" 0
expect "warnings" "$(grep -c 'the last known hosts stay' <<<"$err")" 1

# A host file that changes.
echo 'localhost slots=1' >"$scratch/hosts"
begin -np 1 --min-np 1 --max-np 2 --hostfile "$scratch/hosts"
until_out 'generation 1, rank 0 of 1'
echo 'localhost slots=4' >"$scratch/hosts"
until_out 'generation 2, rank . of 2' 2
touch "$folder/stop"
finish
expect "exit code with a host file" "$code" 0

# No host at first: the job waits, and then runs.
: >"$scratch/slots"
begin -np 1 --min-np 1 --host-discovery-script "cat $scratch/slots"
sleep 1.5
echo localhost:1 >"$scratch/slots"
until_out 'generation 1, rank 0 of 1'
touch "$folder/stop"
finish
expect "exit code of a job that waited" "$code" 0
