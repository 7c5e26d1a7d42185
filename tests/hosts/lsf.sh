#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Inside a job of LSF, blaunch starts the agents, and jsrun does where CSM has allocated the hosts; also --jsrun. The
# programs of LSF and CSM are stand-ins, written from their documentation (tests/standins).
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 3
export HOSTS_ON=$HORO_SOURCE/tests/hosts/hosts.sh PATH=$HORO_SOURCE/tests/standins:$PATH
for variable in "${!LSB_@}" "${!CSM_@}" "${!JSM_@}" "${!OMPI_@}" "${!PMI@}"; do unset "$variable"; done
# No ssh login is possible.
mv /run/home/.ssh/id_ed25519 "$scratch/away"

try timeout 60 horo run -H h1:1 --starter lsf true
expect "exit code outside a job" "$code" 2
expect_in "the error" "$err" "--starter lsf outside a job of LSF"

export LSB_JOBID=77 LSB_MCPU_HOSTS="head 1 h1 2 h2 2"
try timeout 60 horo run --dry-run true
expect_in "the plan" "$out" "starter    local, blaunch"
expect_in "the plan" "$out" "; by blaunch (a host of LSF job 77)"
try timeout 60 horo run --tag off sh -c 'echo "$RANK $(hostname) ${HORO_RENDEZVOUS%:*}"'
expect "exit code ($err)" "$code" 0
expect "ranks" "$(sort <<<"$out")" "0 head 10.83.0.254
1 h1 10.83.0.254
2 h1 10.83.0.254
3 h2 10.83.0.254
4 h2 10.83.0.254"
nothing_left h1 h2

# Standard input and exit codes; horo run, the blaunch of an agent, or a whole host ends.
printf 'to rank 0\n' >"$scratch/input"
timeout 60 horo run -H h1:1,h2:1 --stdin rank0 --tag off sh -c '[ "$RANK" != 0 ] || cat' <"$scratch/input" >"$scratch/out"
expect "what rank 0 read" "$(<"$scratch/out")" "to rank 0"
try timeout 60 horo run -H h1:1,h2:1 sh -c '[ "$RANK" = 1 ] && exit 5; sleep 1000'
expect "exit code" "$code" 5
expect_in "the report" "$err" "rank 1 on h2 failed first: exit code 5"
nothing_left h1 h2
: >"$scratch/out"
horo run -H h1:1,h2:1 --tag off sh -c 'echo here; sleep 1000' >"$scratch/out" 2>"$scratch/err" &
eventually "two ranks" '[ "$(grep -c here "$scratch/out")" = 2 ]'
kill -KILL $!
wait $!
nothing_left h1 h2
hosts crash h2
try timeout 60 horo run -H h1:1,h2:1 true
expect "exit code without h2" "$code" 125
expect_in "the report" "$err" "host h2 cannot be used: blaunch to host 'h2' ended with exit code"
nothing_left h1

# The hosts are not hosts of the job.
try timeout 60 horo run -H h1:1,other:1 --dry-run true
expect_in "the plan" "$(grep "^host  *other: " <<<"$out")" "; by ssh as root to other, port 22"
try timeout 60 horo run -H h1:1,other:1 --starter lsf --dry-run true
expect "exit code" "$code" 2
expect_in "the error" "$err" "host 'other' does not belong to LSF job 77"
# The agent does not exist.
HORO_AGENT_PATH=$scratch/nowhere try timeout 60 horo run -H h1:1 true
expect "exit code without an agent" "$code" 125
expect_in "the report" "$err" "$scratch/nowhere"
PATH=${PATH#*:} try timeout 60 horo run -H h1:1 --dry-run true
expect_in "the plan without blaunch" "$out" "port 22 (LSF job 77: command 'blaunch' is not found in PATH)"

# examples/lsf/batch.sh, run as LSF does: LSF sends SIGUSR2 to all processes of the job at the end of its time.
cat >"$scratch/train" <<'TRAIN'
#!/bin/bash
trap 'echo "rank $RANK saved"; exit 0' USR2
echo "rank $RANK of $WORLD_SIZE runs"
while :; do sleep 0.05; done
TRAIN
chmod +x "$scratch/train"
sed "s|^command=.*|command=($scratch/train)|" "$HORO_SOURCE/examples/lsf/batch.sh" >"$scratch/batch"
grep -q "^command=.*train)" "$scratch/batch" || fail "batch.sh has no command"
: >"$scratch/out"
LSB_MCPU_HOSTS="head 1 h1 1" setsid bash "$scratch/batch" >"$scratch/out" 2>"$scratch/err" &
job=$!
eventually "two ranks" '[ "$(grep -c "of 2 runs" "$scratch/out")" = 2 ]'
pkill -USR2 -s "$job"
wait "$job"
expect "exit code of batch.sh" "$?" 75
eventually "both ranks' words" '[ "$(grep -c saved "$scratch/out")" = 2 ]'
expect_in "the report" "$(<"$scratch/err")" "exit code 75 asks for the job to be queued again"
nothing_left h1

# An elastic job follows a job that is resized.
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"
TRAINEE=$ELASTIC_TRAINEE
export LSB_DJOB_HOSTFILE=$scratch/djob LSB_MCPU_HOSTS="h1 1"
echo h1 >"$LSB_DJOB_HOSTFILE"
begin --min-np 1
until_out 'generation 1, rank 0 of 1'
bresize request -m h3 2 77
until_out 'generation [0-9], rank . of 3' 3
bresize release '1*h3' 77
until_out 'generation [0-9], rank 1 of 2'
bresize release h3 77
until_out 'generation [0-9], rank 0 of 1' 2
until_out ': removed$' 2
touch "$folder/stop"
finish
expect "exit code of a job that was resized ($err)" "$code" 0
expect "losses" "$(grep -c 'killed by' <<<"$err")" 0
nothing_left h1 h3
exit 0
