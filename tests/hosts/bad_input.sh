#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Hosts, servers and disks that fail in unusual ways, several jobs on the same hosts, and a job inside another job.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 2
ssh_home=/run/home/.ssh

# The host does not know the key.
ssh-keygen -q -t ed25519 -N '' -f "$scratch/stranger"
mv "$ssh_home/id_ed25519" "$scratch/id"
try timeout 60 horo run -H h1:1 -i "$scratch/stranger" true
expect "exit code with an unknown key" "$code" 125
expect_in "the error" "$err" "it refuses user 'root' with $scratch/stranger; to let a key in: ssh-copy-id"
mv "$scratch/id" "$ssh_home/id_ed25519"

# The agent has another version.
mkdir "$scratch/bin"
cat >"$scratch/bin/horo-agent" <<'PY'
#!/usr/bin/python3
import os, struct, time
version = b"9.9.9"
hello = struct.pack("<BIHII", 1, 0x41524F48, 3, 90909, len(version)) + version
os.write(1, struct.pack("<I", len(hello)) + hello)
while os.read(0, 4096):
    pass
PY
chmod +x "$scratch/bin/horo-agent"
for fanout in 1 32; do
  HORO_AGENT_PATH=$scratch/bin/horo-agent try timeout 60 horo run -H h1:1,h2:1 --fanout "$fanout" true
  expect "exit code with another version" "$code" 125
  # Both hosts are reached from here, so either may answer first.
  expect_in "the error" "${err/host h2 cannot/host h1 cannot}" "host h1 cannot be used: "
  expect_in "the error" "$err" "horo-agent is horo 9.9.9 with protocol 3, this is horo "
  nothing_left h1 h2
done

# A server accepts connections and never answers; a name is never resolved, or resolved late.
cat >"$scratch/servers.py" <<'PY'
import socket, struct, sys, threading, time
silent = socket.create_server(("10.83.0.254", 2225))
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("10.83.0.254", 53))
open(sys.argv[1], "w").close()
def answer(query, address):
    name, at = [], 12
    while query[at]:
        name.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    kind = struct.unpack(">H", query[at + 1:at + 3])[0]
    if name[0] == "never":
        return
    time.sleep(1)
    known = name[0] == "late" and kind == 1
    reply = query[:2] + struct.pack(">HHHHH", 0x8180, 1, int(known), 0, 0) + query[12:at + 5]
    if known:
        reply += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton("10.83.0.1")
    names.sendto(reply, address)
while True:
    query, address = names.recvfrom(512)
    threading.Thread(target=answer, args=(query, address), daemon=True).start()
PY
python3 "$scratch/servers.py" "$scratch/ready" &
servers=$!
eventually "the servers" '[ -e "$scratch/ready" ]'
printf 'nameserver 10.83.0.254\noptions attempts:5 timeout:5\n' >"$scratch/resolv.conf"
mount --bind "$scratch/resolv.conf" "$(readlink -f /etc/resolv.conf)" || skip "cannot replace /etc/resolv.conf"
echo "late.test $(cut -d' ' -f1,2 /run/horo-hosts/h1.key.pub)" >>"$ssh_home/known_hosts"
try timeout 60 horo run -H late.test:1 --tag off hostname
expect "behind a late name server" "$out$err" h1
try timeout 60 horo run -H never.test:1 --start-timeout 2 true
expect "exit code without a name server" "$code" 124
expect_in "the error" "$err" "host never.test: looking up 'never.test'"
printf 'Host h2\n  HostName 10.83.0.254\n  Port 2225\n' >"$ssh_home/config"
try timeout 60 horo run -H h1:1,h2:1 --start-timeout 2 true
expect "exit code with a silent server" "$code" 124
expect_in "the error" "$err" "host h2: key exchange with 10.83.0.254:2225"
try timeout 60 horo run -H h1:1,h2:1 --start-timeout 3 --fanout 1 true
expect "exit code with a silent server behind a host" "$code" 124
expect_in "the error" "$err" "host h2: key exchange with 10.83.0.254:2225, from host h1"
rm "$ssh_home/config"
kill "$servers"
nothing_left h1 h2

# A server that hangs up before it has shown its key gives a reason, whose bytes would act on the terminal.
cat >"$scratch/hangs_up.py" <<'PY'
import socket, struct, sys
server = socket.create_server(("10.83.0.254", 2226))
open(sys.argv[1], "w").close()
reason = b"\x1b]0;owned\x07\xc2\x9b31mgo away"
payload = struct.pack(">BII", 1, 2, len(reason)) + reason + struct.pack(">I", 0)
padding = 8 - (len(payload) + 5) % 8 + 8
while True:
    peer, _ = server.accept()
    peer.sendall(b"SSH-2.0-none\r\n" + struct.pack(">IB", len(payload) + padding + 1, padding) + payload + bytes(padding))
    peer.recv(4096)
    peer.close()
PY
python3 "$scratch/hangs_up.py" "$scratch/hangs" &
hangs_up=$!
eventually "the server that hangs up" '[ -e "$scratch/hangs" ]'
printf 'Host h2\n  HostName 10.83.0.254\n  Port 2226\n' >"$ssh_home/config"
for way in --no-verbose --ssh-program=ssh; do
  try timeout 60 horo run -H h1:1,h2:1 --start-timeout 10 $way true
  [ "$code" != 0 ] || fail "a job runs behind a server that hangs up"
  expect_in "the error" "$err" "host h2"
  expect "terminal sequences in the error" "$(LC_ALL=C grep -c $'[\033\007\233]' <<<"$err")" 0
done
rm "$ssh_home/config"
kill "$hangs_up"
nothing_left h1 h2

# The wall clock of one host is an hour late for its agent and ranks. The hosts find each other, and the report names the
# right first failure.
late="export LD_PRELOAD=$HORO_BIN/../tests/hosts_clock_shift.so CLOCK_SHIFT=h2=-3600000"
printf '#!/bin/bash\n%s\nexec %s\n' "$late" "$HORO_BIN/horo-agent" >"$scratch/bin/horo-agent"
export HORO_AGENT_PATH=$scratch/bin/horo-agent
expect "the late clock" "$(on h2 bash -c "$late; echo \$((\$(env -u LD_PRELOAD date +%s) - \$(date +%s)))")" 3600
try timeout 60 horo run -H h1:2,h2:2 --tag off bash -c "$late; exec $HORO_BIN/../tests/stall_rank reduce=a only=3 exit=3 lose=b"
expect "exit code with a late clock ($err)" "$code" 3
grep -Eq 'rank 3 on h2 failed first: exit code 3 after [0-9.]+ m?s$' <<<"$err" || fail "the report: $err"
expect "ranks that lost it" "$(grep -c "peer_lost.*rank 3 on h2" <<<"$out"$'\n'"$err")" 3
expect_in "the report" "$err" "timeline of 4 ranks"
unset HORO_AGENT_PATH
nothing_left h1 h2

# No host has the given interfaces.
try timeout 60 horo run -H h1:1,h2:1 --network-interfaces none0,none1 "$HORO_BIN/../tests/stall_rank" reduce=a
expect "exit code without an interface" "$code" 11
expect_in "the error" "$err" "invalid_argument: interface 'none0'"
expect_in "the error" "$err" "name an interface or address of this host"
nothing_left h1 h2

# When a disk is full, the ranks' output still reaches the launcher, and the user is told.
mkdir "$scratch/disk"
mount -t tmpfs -o size=64k tmpfs "$scratch/disk"
try timeout 60 horo run -H h1:1,h2:1 --tag off --output-filename "$scratch/disk/logs" seq 100000
expect "lines in spite of a full disk" "$(wc -l <<<"$out")" 200000
expect_in "what is said of the full disk" "$err" "No space left on device"
umount "$scratch/disk"
nothing_left h1 h2

# Two jobs run on the same hosts at once, and one of them is killed.
horo run -H h1:2,h2:2 --tag off sh -c 'echo here; sleep 1000' >"$scratch/first" 2>&1 &
first=$!
horo run -H h1:2,h2:2 --fanout 1 --tag off sh -c 'echo here; sleep 3; echo "$RANK"' >"$scratch/second" 2>&1 &
second=$!
eventually "both jobs" '[ "$(cat "$scratch/first" "$scratch/second" | grep -c here)" = 8 ]'
kill -KILL "$first"
wait "$second"
expect "exit code of the other job" "$?" 0
expect "what the other job's ranks say" "$(grep -v here "$scratch/second" | sort | xargs)" "0 1 2 3"
nothing_left h1 h2

# A launcher inside a rank starts a separate job.
try timeout 60 horo run -H h1:2 --tag off "$HORO_BIN/horo" run -np 2 --tag off sh -c 'echo "$RANK of $WORLD_SIZE on $(hostname)"'
expect "jobs within a job, here" "$(sort <<<"$out")" "0 of 2 on h1
0 of 2 on h1
1 of 2 on h1
1 of 2 on h1"
try timeout 60 horo run -H h1:1 --tag off "$HORO_BIN/horo" run -H h2:2 --tag off sh -c 'echo "$RANK of $WORLD_SIZE on $(hostname)"'
expect "a job within a job, on another host" "$(sort <<<"$out")" "0 of 2 on h2
1 of 2 on h2"
nothing_left h1 h2
exit 0
