#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Networks that lose, limit, deny or only have IPv6, encryption between hosts, and hosts with few file descriptors: a job works,
# or its error says what is in its way.
# shellcheck disable=SC2016 # The hosts expand it, not this script.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 2
rank=$STANDALONE_RANK

# sums WHAT ARGUMENT...: a job of four ranks with these arguments sums twice.
sums() {
  local what=$1
  shift
  try timeout 100 horo run -H h1:2,h2:2 --tag off "$@" "$rank" sum sum
  expect "exit code $what ($err)" "$code" 0
}

# Encryption, without which the bytes of a tensor can be read on the wire.
sums "with encryption" --encrypt
try timeout 60 horo run -H h1:1,h2:1 --encrypt --cpu-operations gloo "$rank" sum
[ "$code" != 0 ] || fail "Gloo takes part in an encrypted job"
expect_in "the error" "$err" "gloo cannot encrypt, and HORO_ENCRYPT (--encrypt) is on; only tcp can"
try timeout 60 horo run -H h1:1,h2:1 --tag off bash -c "HORO_ENCRYPT=\$RANK exec $rank sum"
[ "$code" != 0 ] || fail "a rank that encrypts and one that does not sum"
expect_in "the error" "$err" "HORO_ENCRYPT (--encrypt) must be the same on all ranks"
# A host without libcrypto: an empty file hides it, for this job only.
try timeout 60 horo run -H h1:1,h2:1 --encrypt --tag off unshare -m bash -c '
  for file in /usr/lib/*/libcrypto.so.*; do mount --bind /dev/null "$file"; done
  exec "$0" sum' "$rank"
[ "$code" != 0 ] || fail "a rank encrypts without libcrypto"
expect_in "the error" "$err" "--encrypt (HORO_ENCRYPT) needs OpenSSL's libcrypto on every host"
expect_in "the error" "$err" "install Debian's libssl3, or run without --encrypt"
try timeout 60 horo run -H h1:1,h2:1 --tag off unshare -m bash -c '
  for file in /usr/lib/*/libcrypto.so.*; do mount --bind /dev/null "$file"; done
  exec "$0" sum' "$rank"
expect "exit code without libcrypto and without encryption ($err)" "$code" 0
nothing_left h1 h2

# A link that loses every 100th frame, and hosts that disagree about the largest packet.
hosts shape h1 lose 100
sums "over a link that loses frames"
sums "over a link that loses frames, with encryption" --encrypt
hosts shape h1
on h1 ip link set eth0 mtu 9000
on h2 ip link set eth0 mtu 1280
sums "with two sizes of packets"
on h1 ip link set eth0 mtu 1500
on h2 ip link set eth0 mtu 1500
nothing_left h1 h2

# A host that knows its own name as 127.0.0.1, as Debian's installer sets it up: the routes decide.
cp /etc/hosts "$scratch/hosts"
on h1 sed '$a 127.0.1.1 h1' "$scratch/hosts" >"$scratch/own_hosts"
sed -i 's/^10.83.0.1 h1$/127.0.1.1 h1/' "$scratch/own_hosts"
try timeout 60 horo run -H h1:1,h2:1 --tag off unshare -m bash -c '
  [ "$(hostname)" != h1 ] || mount --bind "$1" /etc/hosts
  exec "$0" sum' "$rank" "$scratch/own_hosts"
expect "exit code where a name leads to the host itself ($err)" "$code" 0
nothing_left h1 h2

# Hosts without a default route, and whose interfaces have different names: the routes decide, unless the user names an interface,
# which each host may do for itself.
for host in h1 h2; do expect "default route of $host" "$(on "$host" ip route show default)" ""; done
on h2 ip link set eth0 down
on h2 ip link set eth0 name nic0
on h2 ip link set nic0 up
sums "with interfaces that differ by host"
sums "with an interface of each host's own" bash -c '
  HORO_GLOO_IFACE=eth0
  [ "$(hostname)" != h2 ] || HORO_GLOO_IFACE=nic0
  export HORO_GLOO_IFACE
  exec "$@"' -
try timeout 60 horo run -H h1:1,h2:1 --gloo-iface eth0 --tag off "$rank" sum
[ "$code" != 0 ] || fail "a rank uses an interface that its host does not have"
expect_in "the error" "$err" "interface 'eth0'"
on h2 ip link set nic0 down
on h2 ip link set nic0 name eth0
on h2 ip link set eth0 up
nothing_left h1 h2

# A firewall that lets connections pass in one direction only: the error says which address and port cannot be reached, within
# the time for the start or for a silent peer.
for deny in in out:10.83.0.2; do
  hosts shape h1 deny "$deny"
  try timeout 100 horo run -H h1:1,h2:1 --start-timeout 5 --gloo-timeout 3 "$rank" sum
  closed=$([ "$deny" = in ] && echo 1 || echo 2)
  grep -Eq "timed out|does not answer" <<<"$err" || fail "a job works through a firewall: $out"
  grep -Eq "10\.83\.0\.$closed:[0-9]+" <<<"$err" || fail "the error with 'deny $deny' names no closed port: $err"
done
hosts shape h1
nothing_left h1 h2

# Few file descriptors: a soft limit is raised, a hard one is enough or is named.
try timeout 60 horo run -H h1:2,h2:2 --tag off bash -c "ulimit -Sn 24; exec $rank sum sum"
expect "exit code with a soft limit of 24 descriptors ($err)" "$code" 0
try timeout 60 horo run -H h1:2,h2:2 --tag off bash -c "ulimit -n 64; exec $rank sum sum"
expect "exit code with 64 descriptors ($err)" "$code" 0

# Strangers that say nothing or nonsense come to all ports of a host while jobs start.
cat >"$scratch/strangers.py" <<'PY'
import socket, sys, time
kept, until = [], time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    ports = set()
    for name in ("tcp", "tcp6"):
        with open("/proc/net/" + name, encoding="ascii") as table:
            ports |= {int(line.split()[1].rsplit(":", 1)[1], 16) for line in table if line.split()[3] == "0A"}
    for port in ports - {22}:
        for text in (b"", b"\xa5" * 200, b"horo-tx\0" + bytes(64), b"horo-tr\0" + bytes(36), b"horo-kv\0" + bytes(36)):
            stranger = socket.socket()
            stranger.setblocking(False)
            stranger.connect_ex((sys.argv[1], port))
            kept.append((stranger, text))
    time.sleep(0.02)
    for stranger, text in kept[-200:]:
        try:
            stranger.send(text)
        except OSError:
            pass
    while len(kept) > 400:
        kept.pop(0)[0].close()
PY
starts=${HORO_TEST_STARTS:-4}
for host in 1 2; do
  on "h$host" python3 "$scratch/strangers.py" "10.83.0.$host" $((250 + 10 * starts)) &
  strangers+=($!)
done
for ((i = 0; i < starts; i++)); do
  try timeout 60 horo run -H h1:2,h2:2 --tag off "$rank" sum
  expect "exit code of start $i among strangers ($err)" "$code" 0
done
for host in 1 2; do on "h$host" pkill -f "$scratch/strangers.py"; done
wait "${strangers[@]}"
nothing_left h1 h2

# Two jobs of one user on the same hosts at once.
horo run -H h1:2,h2:2 --tag off "$rank" sum sum sum >"$scratch/first" 2>&1 &
first=$!
sums "beside another job"
wait "$first"
expect "exit code of the other job ($(<"$scratch/first"))" "$?" 0
nothing_left h1 h2

# Hosts with IPv6 only. ssh needs IPv4 here, so the ranks are started one by one.
HORO_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export HORO_SECRET HORO_RENDEZVOUS='[fd83::1]:4711' HORO_SIZE=2
for host in 1 2; do
  on "h$host" ip addr flush dev eth0
  on "h$host" ip addr add "fd83::$host/64" dev eth0 nodad
done
HORO_RANK=1 on h2 timeout 60 "$rank" sum sum >"$scratch/second" 2>&1 &
second=$!
HORO_RANK=0 try on h1 timeout 60 "$rank" sum sum
expect "exit code with IPv6 only ($err)" "$code" 0
wait "$second"
expect "exit code of the other rank with IPv6 only ($(<"$scratch/second"))" "$?" 0
exit 0
