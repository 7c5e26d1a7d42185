#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Elastic jobs over several hosts, which are lost, cut off, preempted, or come while the job runs.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 3
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"
TRAINEE=$ELASTIC_TRAINEE

# A rank on another host is killed, and replaced there.
begin -H h1:2,h2:2 --min-np 2
until_out 'generation 1, rank . of 4' 4
on h2 kill -KILL "$(on h2 pgrep -f "$TRAINEE" | head -n 1)"
until_out 'generation ., rank 3 of 4, step [1-9]'
touch "$folder/stop"
finish
expect "exit code after a loss" "$code" 0
nothing_left h1 h2

# The user takes a host away, and gives it back; another one is added. horo top shows both.
begin -H h1:1,h3:2 --min-np 1
until_out 'generation 1, rank . of 3' 3
ask horo shrink h3
expect_in "the answer to a shrink" "$out" "host h3 leaves the job: 2 ranks there end the step and go; 1 rank of the job goes on"
until_out 'generation 2, rank 0 of 1'
until_out ': removed$' 2
eventually "a host that has left in horo top" 'horo top --once | grep -q "^\* host h3 has left: host h3 was asked to leave"'
expect_in "a view of the job" "$(horo top --once)" "generation 2: 1 rank (1 or more); running"
ask horo grow h3:1
until_out 'generation ., rank 1 of 2'
ask horo grow h2:1
expect_in "the answer to a new host" "$out" "host h2 is used with 1 slot: a rank starts there and joins at the end of a step when ready"
until_out 'generation ., rank 2 of 3'
eventually "the ranks of all hosts in horo top" 'horo top --once | grep -q ": 3 ranks$"'
touch "$folder/stop"
finish
expect "exit code after the user's changes" "$code" 0
expect "losses" "$(grep -c 'killed by' <<<"$err")" 0
nothing_left h1 h2 h3

# A host crashes: the ranks of the others go on.
begin -H h1:2,h2:2,h3:1 --min-np 2
until_out 'generation 1, rank . of 5' 5
hosts crash h2
until_out 'generation 2, rank . of 3' 3
touch "$folder/stop"
finish
expect "exit code after a crash" "$code" 0
expect_in "a line about the host" "$err" "host h2"
nothing_left h1 h3

# A host is cut off: silence counts as a loss, and its ranks end by themselves.
begin -H h1:2,h3:2 --min-np 2 --heartbeat-timeout 2
until_out 'generation 1, rank . of 4' 4
hosts cut h3
until_out 'generation 2, rank . of 2' 2
hosts heal h3
touch "$folder/stop"
finish
expect "exit code after a cut" "$code" 0
nothing_left h1 h3

# A host comes by the script, and one goes. The launcher's machine takes part.
printf 'head:1\nh1:1\n' >"$scratch/slots"
begin --min-np 1 -np 2 --host-discovery-script "cat $scratch/slots"
until_out 'generation 1, rank . of 2' 2
printf 'head:1\nh1:1\nh3:2\n' >"$scratch/slots"
until_out 'generation ., rank . of 4' 4
printf 'head:1\nh3:2\n' >"$scratch/slots"
until_out 'generation ., rank . of 3' 3
touch "$folder/stop"
finish
expect "exit code after hosts came and went" "$code" 0
expect_in "the removed rank" "$out" ': removed'
nothing_left h1 h3

# A host is told to go, as by a batch system that preempts it: its ranks end their step and leave.
begin -H h1:2,h3:2 --min-np 2
until_out 'generation 1, rank . of 4' 4
on h3 pkill -TERM -x -n horo-agent
until_out 'generation 2, rank . of 2' 2
until_out ': removed$' 2
touch "$folder/stop"
finish
expect "exit code after a preemption" "$code" 0
expect_in "a line about the host" "$err" "host h3 got signal 15"
nothing_left h1 h3

# A second SIGTERM ends the ranks of the host at once, here one that does not come to the end of its step.
begin -H h1:1,h3:1 --min-np 1 --term-grace 1h
until_out 'generation 1, rank . of 2' 2
touch "$folder/hang.1"
until_out 'worker 1: hangs' 1
while kill -0 $job && ! grep -q 'generation 2, rank 0 of 1' "$scratch/out"; do
  on h3 pkill -TERM -x -n horo-agent
  sleep 0.5
done
touch "$folder/stop"
finish
expect "exit code after a second SIGTERM" "$code" 0
expect_in "a line about the second signal" "$err" "was told to end by a second signal"
nothing_left h1 h3

# A host that cannot be reached does not keep the others from beginning.
begin -H h1:2,10.83.0.99:2 -np 4 --min-np 2 --start-timeout 4
until_out 'generation 1, rank . of 2' 2
touch "$folder/stop"
finish
expect "exit code without a host" "$code" 0
expect_in "a line about the host" "$err" "10.83.0.99"
nothing_left h1

# The launcher is killed: nothing of the job stays on any host.
begin -H h1:2,h3:2 --min-np 2
until_out 'generation 1, rank . of 4' 4
kill -KILL "$job"
wait "$job" 2>/dev/null
nothing_left h1 h3

# The launcher's host is cut off from all others: the job ends there, and on each host by itself.
begin -H h1:2,h3:1 --min-np 1 --heartbeat-timeout 2
until_out 'generation 1, rank . of 3' 3
hosts cut h1
hosts cut h3
finish
expect "exit code without any host" "$code" 125
expect_in "the failure" "$err" "no worker is left that has the training's state"
hosts heal h1
hosts heal h3
nothing_left h1 h3
