#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The test hosts work as described in hosts.sh, and no process outlives them.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 2

expect "this machine" "$(hostname)" head
expect "a host by ssh" "$(ssh h2 hostname)" h2
expect "a host without ssh" "$(on h1 hostname)" h1
on h1 touch /dev/shm/mine
expect "another's shared memory" "$(ssh h2 ls /dev/shm)" ""
expect "from host to host" "$(ssh h1 ssh h2 hostname)" h2

expect "what runs on an idle host" "$(processes h1)" ""
ssh h1 sleep 77 &
client=$!
eventually "the process shows" '[[ $(processes h1) = *"sleep 77"* ]]'
kill "$client"
eventually "sshd ends" '[[ $(processes h1) != *sshd* ]]'

# Connecting takes two round trips of 2 x 100 ms; logging in takes more.
hosts shape h1 delay 100ms rate 50mbit
begin=${EPOCHREALTIME//[.,]/}
expect "a host far away" "$(ssh h1 hostname)" h1
[ $((${EPOCHREALTIME//[.,]/} - begin)) -ge 400000 ] || fail "a delay of 100 ms each way has no effect"
hosts shape h1

hosts cut h1
timeout 1 ssh -o ConnectTimeout=9 h1 true && fail "a cut host answers"
hosts heal h1
expect "a healed host" "$(ssh h1 hostname)" h1
hosts drop h1 h2
timeout 1 ssh h2 ssh -o ConnectTimeout=9 h1 true && fail "the answers of a host that lose their way arrive"
expect "a host that another one does not hear" "$(ssh h1 hostname)" h1
hosts carry h1 h2
expect "a host that is heard again" "$(ssh h2 ssh h1 hostname)" h1
hosts crash h2
ssh h2 true 2>/dev/null && fail "a crashed host answers"

# A test machine inside this one ends when SIGKILL ends its first process.
bash "$HORO_SOURCE/tests/hosts/hosts.sh" run 1 bash -c 'touch "$0/ready"; sleep 987654' "$scratch" &
world=$!
eventually "the inner world is there" '[ -f "$scratch/ready" ]'
kill -KILL "$world"
eventually "it ends as a whole" '! grep -lqs 987654 /proc/[0-9]*/cmdline'
exit 0
