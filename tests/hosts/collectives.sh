#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# libhoro over several hosts: sums, jobs started by the Python packages, a rank that is killed, and a host that is cut off.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 3
rank=$STANDALONE_RANK

try timeout 60 horo run -H h1:2,h2:2,h3:1 --tag off "$rank" sum sum rounds=1 sum identity
expect "exit code" "$code" 0
expect "ranks and their hosts" "$(sort <<<"$out")" "rank 0 of 5, local 0 of 2, cross 0 of 3
rank 1 of 5, local 1 of 2, cross 0 of 2
rank 2 of 5, local 0 of 2, cross 1 of 3
rank 3 of 5, local 1 of 2, cross 1 of 2
rank 4 of 5, local 0 of 1, cross 2 of 3"
nothing_left h1 h2 h3

# Slow network links.
for host in h1 h2; do hosts shape "$host" delay 5ms rate 1gbit; done
try timeout 60 horo run -H h1:2,h2:2 --tag off "$rank" sum sum
expect "exit code over slow links" "$code" 0
for host in h1 h2; do hosts shape "$host"; done

# No thread of the library handles a signal of the program, or dies of SIGPIPE when a peer is gone.
try timeout 60 horo run -H h1:2,h2:2 --tag off "$HORO_BIN/../tests/horo_probe" threads
expect "what the threads do with signals, exit code" "$code" 0

# A rank is killed, once a leader of its host and once another rank. The other ranks learn which rank was lost and why.
for victim in 0 1 4 5; do
  try timeout 60 horo run -H h1:2,h2:2,h3:2 --tag off "$rank" sum "only=$victim" kill lose
  expect "exit code" "$code" 137
  expect_in "the report" "$err" "rank $victim on h$((victim / 2 + 1)) failed first: killed by signal 9 (SIGKILL)"
  expect "how many others heard" "$(grep -cE "peer_lost: rank $victim on h. was lost: (killed by signal 9|ended without)" <<<"$out")" 5
done

# A rank is stopped, and another rank is busy: every rank learns which rank is late and why, and the line is printed once.
for case in "3 stop 5 stopped, by SIGSTOP or Ctrl-Z" "5 nap=5 6 asleep outside libhoro"; do
  read -r rank_of_case word hear verdict <<<"$case"
  try timeout 60 horo run -H h1:2,h2:2,h3:2 --tag off --stall-warning-time 1 --stall-shutdown-time 2 \
    "$rank" sum "only=$rank_of_case" "$word" lose
  expect_in "who is blamed" "$err" "rank $rank_of_case on h$((rank_of_case / 2 + 1)) ($verdict"
  expect "warnings" "$(grep -c "stall: warning: tensor .* has waited 1" <<<"$err")" 1
  expect "how many heard why" \
    "$(grep -cE "peer_lost: stalled for longer .* for rank $rank_of_case on h. \($verdict" <<<"$out")" "$hear"
done
nothing_left h1 h2 h3
exit 0
