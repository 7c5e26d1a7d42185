#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that do in an elastic job what they should not, and changes that come thick and fast.
# shellcheck source=tests/cli/lib.sh
. "$HORO_SOURCE/tests/cli/lib.sh"
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"

# A rank ends with code 0 in the middle of the training, without horo_shutdown: it has failed, as in an ordinary job. The
# others go on, and a new rank takes its place.
begin -np 3 --min-np 1
until_out 'generation 1, rank . of 3' 3
touch "$folder/leave.1"
until_out 'worker 3: generation ., rank 2 of 3'
touch "$folder/stop"
finish
expect "exit code after _exit(0)" "$code" 0
expect_in "the line about it" "$err" "without worker 1 on host localhost (ended with code 0 without horo_shutdown"

# A rank returns while others go on: the program is ending, and the others are told so by name.
begin -np 3 --min-np 1
until_out 'generation 1, rank . of 3' 3
touch "$folder/return.1"
finish
[ "$code" -ne 0 ] || fail "a job whose ranks were cut off by one that returned has succeeded"
expect_in "the reason" "$err" "worker 1 on host localhost ended with code 0, so the program is ending"

# A rank catches the error and calls a collective again: it gets the same error again at once, and can still go on.
begin -np 3 --min-np 1
until_out 'generation 1, rank . of 3' 3
touch "$folder/again.0" "$folder/again.2"
kill -KILL "$(pid_of 1)"
until_out 'generation ., rank 2 of 3, step [1-9]'
touch "$folder/stop"
finish
expect "exit code after a call behind the loss" "$code" 0
expect "calls behind the loss" "$(grep -cE 'worker [02]: again: (peer_lost|shut_down)' <<<"$out")" 2

# New ranks have another version of Horo: each says which versions meet, and the others go on without them.
cat >"$scratch/other_version" <<SH
#!/bin/bash
[ "\$HORO_WORKER" -lt 2 ] || export HORO_LAUNCHER_VERSION=9999
exec "$TRAINEE" "\$@"
SH
chmod +x "$scratch/other_version"
TRAINEE=$scratch/other_version begin -np 2 --min-np 1 --slot-restarts 1
until_out 'generation 1, rank . of 2' 2
kill -KILL "$(pid_of 1)"
until_out 'generation 2, rank 0 of 1'
for ((i = 0; i < 600; i++)); do
  ! grep -q 'is put aside' "$scratch/err" || break
  sleep 0.1
done
touch "$folder/stop"
finish
expect "exit code with joiners of another version" "$code" 0
expect_in "their error" "$err" "the launcher has version code 9999, this libhoro is"
expect_in "the line about them" "$err" "host localhost is put aside: worker 2 on host localhost"

# Two changes in one second, and rank 0 lost between them.
echo localhost:2 >"$scratch/slots"
begin -np 2 --min-np 1 --host-discovery-script "cat $scratch/slots"
until_out 'generation 1, rank . of 2' 2
echo localhost:3 >"$scratch/slots"
kill -KILL "$(pid_of 0)"
echo localhost:4 >"$scratch/slots"
until_out 'generation [0-9]+, rank 3 of 4, step [1-9]'
touch "$folder/stop"
finish
expect "exit code after two changes at once" "$code" 0
grep -qE 'worker 1: generation ., rank 0 of' <<<"$out" || fail "the survivor did not become rank 0"

# Hundreds of replacements leave no descriptor open in the launcher.
: >"$scratch/err"
horo run -np 1 --min-np 1 --slot-restarts 100000 --output-filename "$scratch/logs" false >"$scratch/out" 2>"$scratch/err" </dev/null &
job=$!
descriptors() { find "/proc/$job/fd" -mindepth 1 | wc -l; }
# until_worker NUMBER: waits until this worker has been started.
until_worker() {
  for ((i = 0; i < 6000; i++)); do
    [ -z "$(find "$scratch/logs" -maxdepth 1 -name "rank.*$1" 2>/dev/null)" ] || return 0
    sleep 0.05
  done
  fail "worker $1 was never started"
}
until_worker 10
before=$(descriptors)
until_worker 300
after=$(descriptors)
kill -TERM $job
wait $job
[ "$after" -le $((before + 20)) ] || fail "the launcher had $before descriptors, and $after after 300 replacements"
