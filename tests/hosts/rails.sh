#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Hosts with two interfaces, each on a network of its own: the ranks use both at once, and an error names the one that fails.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 2
rank=$STANDALONE_RANK
for host in h1 h2; do
  hosts rail "$host"
  hosts shape "$host" rate 1gbit
done

# shellcheck disable=SC2016 # awk's
sent() { on "$1" awk -v link="$2:" '$1 == link { print $10 }' /proc/net/dev; }

# moved COMMAND...: runs the command; $bytes[HOST-LINK] are what each interface has sent meanwhile.
declare -A bytes
moved() {
  local host link
  for host in h1 h2; do
    for link in eth0 eth1; do bytes[$host-$link]=$(sent "$host" "$link"); done
  done
  try "$@"
  expect "exit code ($err)" "$code" 0
  for host in h1 h2; do
    for link in eth0 eth1; do bytes[$host-$link]=$(($(sent "$host" "$link") - ${bytes[$host-$link]})); done
  done
}

# 64 MiB: half of them on each rail, whether hosts have one rank or several, which exchange by hosts.
for placed in h1:1,h2:1 h1:2,h2:2; do
  moved timeout 100 horo run -H "$placed" --gloo-iface eth0,eth1 --tag off "$rank" large=64
  for at in "${!bytes[@]}"; do
    [ "${bytes[$at]}" -gt $((24 << 20)) ] || fail "$at has carried ${bytes[$at]} bytes of 64 MiB on $placed"
  done
done
moved timeout 100 horo run -H h1:1,h2:1 --gloo-iface eth0 --tag off "$rank" large=64
for host in h1 h2; do
  [ "${bytes[$host-eth1]}" -lt $((1 << 20)) ] || fail "eth1 of $host carries what --gloo-iface eth0 does not give it"
done
# Encrypted, and over Gloo, which uses the first.
moved timeout 100 horo run -H h1:1,h2:1 --gloo-iface eth1,eth0 --encrypt --tag off "$rank" large=8
moved timeout 100 horo run -H h1:1,h2:1 --gloo-iface eth1,eth0 --cpu-operations gloo --tag off "$rank" large=8
[ "${bytes[h1-eth1]}" -gt $((8 << 20)) ] || fail "Gloo does not use the first interface"
nothing_left h1 h2

# A rail that goes down in the middle is named.
before=$(sent h1 eth1)
many=()
for ((i = 0; i < 200; i++)); do many+=(large=32); done
timeout 100 horo run -H h1:1,h2:1 --gloo-iface eth0,eth1 --gloo-timeout 2 --tag off "$rank" "${many[@]}" >"$scratch/down" 2>&1 &
job=$!
eventually "the second rail carries bytes" "[ \$((\$(sent h1 eth1) - $before)) -gt 1000000 ]"
on h2 ip link set eth1 down
wait "$job" && fail "a job goes on without one of its rails"
grep -Eq 'at 10\.84\.0\.[12]:[0-9]+ does not answer over TCP through interface eth1' "$scratch/down" ||
  fail "the error does not name the rail: $(<"$scratch/down")"
nothing_left h1 h2

# A second interface that does not lead to the others, that does not exist, or that only one host uses.
on h2 ip addr flush dev eth1
on h2 ip addr add 10.85.0.2/24 dev eth1
on h2 ip link set eth1 up
try timeout 60 horo run -H h1:1,h2:1 --gloo-iface eth0,eth1 --gloo-timeout 5 "$rank" large=8
expect_in "the error" "$err" "does not answer over TCP through interface eth1"
# shellcheck disable=SC2016 # the rank's
last_has_one='[ "$HOROVOD_RANK" != "$((HOROVOD_SIZE - 1))" ] || export HORO_GLOO_IFACE=eth0; exec "$0" "$@"'
try timeout 60 horo run -H h1:1,h2:1 --gloo-iface eth0,eth1 bash -c "$last_has_one" "$rank" large=8
expect_in "the error of leaders" "$err" "another number of interfaces in HOROVOD_GLOO_IFACE"
try timeout 60 horo run -H h1:2,h2:2 --gloo-iface eth0,eth1 bash -c "$last_has_one" "$rank" large=8
expect_in "the error of other ranks" "$err" "rank 3 uses 1 network interfaces, and rank"
try timeout 60 horo run -H h1:1,h2:1 --gloo-iface eth0,eth7 "$rank" sum
expect_in "the error" "$err" "interface 'eth7' has no IP address on this host"
try timeout 60 horo run -H h1:1,h2:1 --gloo-iface eth0,eth0 "$rank" sum
expect_in "the error" "$err" "interface 'eth0' is named twice"
nothing_left h1 h2
exit 0
