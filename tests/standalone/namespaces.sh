#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks in several network namespaces joined by a bridge. They count as different hosts without any setting, and find each
# other by the addresses at which they reach rank 0.
# shellcheck source=tests/standalone/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "needs root to make network namespaces"
needs ip iproute2
here=h$$
net=10.$((RANDOM % 200 + 20)).$((RANDOM % 250))
trap 'for ((i = 0; i <= 3; i++)); do ip netns del "$here-$i" 2>/dev/null; done; rm -rf "$scratch"' EXIT
ip netns add "$here-0" 2>/dev/null || skip "cannot make network namespaces here"
inside() { ip netns exec "$here-$1" "${@:2}"; }
inside 0 ip link add br0 type bridge || skip "this kernel has no bridges"
inside 0 ip link set br0 up
for ((i = 1; i <= 3; i++)); do
  ip netns add "$here-$i"
  ip link add "p$i" netns "$here-0" type veth peer name eth0 netns "$here-$i" || skip "this kernel has no veth pairs"
  inside 0 ip link set "p$i" master br0 up
  inside "$i" ip addr add "$net.$i/24" dev eth0
  inside "$i" ip link set lo up
  inside "$i" ip link set eth0 up
  # An address that every host has and that leads nowhere, like those of container bridges.
  inside "$i" ip link add docker0 type bridge
  inside "$i" ip addr add 172.31.0.1/24 dev docker0
  inside "$i" ip link set docker0 up
done

export HORO_RENDEZVOUS=$net.2:4711 MEETING_ADDRESSES=1 WORLD_SIZE=5
HORO_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export HORO_SECRET
pids=()
for placed in 4:3 3:2 2:3 1:1 0:2; do # rank:host
  RANK=${placed%:*} inside "${placed#*:}" timeout 60 "$STANDALONE_MEETING" rounds=3 >>"$scratch/out" 2>>"$scratch/err" &
  pids+=($!)
done
code=0
for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
out=$(sort "$scratch/out")
err=$(cat "$scratch/err")
hosts="epoch 3 hosts $net.2[0,3] $net.1[1] $net.3[2,4]"
expect "exit code" "$code" 0
expect "what the ranks know" "$out" "rank 0/5 local 0/2 cross 0/3 $hosts
rank 1/5 local 0/1 cross 1/3 $hosts
rank 2/5 local 0/2 cross 2/3 $hosts
rank 3/5 local 1/2 cross 0/2 $hosts
rank 4/5 local 1/2 cross 1/2 $hosts"

# A rank with another secret is refused and does not disturb the others.
HORO_SECRET=${HORO_SECRET//[0-9]/a} RANK=1 WORLD_SIZE=2 inside 1 timeout 60 "$STANDALONE_MEETING" 2>"$scratch/stranger" &
stranger=$!
RANK=0 WORLD_SIZE=2 inside 2 timeout 60 "$STANDALONE_MEETING" >"$scratch/zero" 2>&1 &
pids=($!)
RANK=1 WORLD_SIZE=2 inside 3 timeout 60 "$STANDALONE_MEETING" >"$scratch/one" 2>&1 &
pids+=($!)
for pid in "${pids[@]}"; do wait "$pid" || fail "a rank failed while another one was refused: $(cat "$scratch/zero" "$scratch/one")"; done
wait "$stranger" && fail "a wrong secret was accepted"
expect "what rank 0 knows while another rank is refused" "$(cat "$scratch/zero")" "rank 0/2 local 0/1 cross 0/2 epoch 1 hosts $net.2[0] $net.3[1]"

# HORO_RENDEZVOUS does not lead to rank 0.
RANK=0 WORLD_SIZE=2 try inside 1 "$STANDALONE_MEETING"
expect_in "the error" "$err" "HORO_RENDEZVOUS='$net.2:4711', at which rank 0 has to listen"
