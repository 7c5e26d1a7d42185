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

# A script that hangs, prints garbage or 10^6 hosts while the job runs keeps nothing else waiting, and changes no host.
cat >"$scratch/discover" <<SH
#!/bin/bash
case \$(cat "$scratch/mood") in
  hangs) sleep 1000 ;;
  garbage) head -c 1000 /dev/urandom ;;
  many) seq -f 'h%.0f' 1000000 ;;
  *) echo localhost:2 ;;
esac
SH
chmod +x "$scratch/discover"
for mood in hangs garbage many; do
  echo good >"$scratch/mood"
  begin -np 2 --min-np 1 --discovery-timeout 1 --host-discovery-script "$scratch/discover"
  until_out 'generation 1, rank . of 2' 2
  echo $mood >"$scratch/mood"
  for ((i = 0; i < 100; i++)); do
    ! grep -q 'the last known hosts stay' "$scratch/err" || break
    sleep 0.1
  done
  kill -KILL "$(pid_of 1)"
  until_out 'worker 2: generation ., rank 1 of 2, step [1-9]'
  touch "$folder/stop"
  finish
  expect "exit code with a script that then has the mood $mood" "$code" 0
  expect "warnings with the mood $mood" "$(grep -c 'the last known hosts stay' <<<"$err")" 1
done

# A script that takes long at the start is waited for, without a warning.
printf '#!/bin/bash\nsleep 3\necho localhost:2\n' >"$scratch/slow"
chmod +x "$scratch/slow"
steps=5 begin -np 2 --min-np 1 --discovery-timeout 60 --host-discovery-script "$scratch/slow"
finish
expect "exit code with a slow script" "$code" 0
expect "warnings about a slow script" "$(grep -c 'the last known hosts stay' <<<"$err")" 0
