#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A rank ends without leaving, and only its peers can notice.
# shellcheck source=tests/standalone/lib.sh
. "$(dirname "$0")/lib.sh"
export HORO_JOB_ID=losses-$$ HORO_HOSTNAME=thishost

# lost CODE-OF-RANK-1 WORDS WORD...: ranks 0 and 2 report why they lost rank 1.
lost() {
  local ended=$1 words=$2
  shift 2
  by_hand 3 sum "$@" lose
  expect "exit codes after $*" "$codes" "0 $ended 0"
  expect "what ranks 0 and 2 say after $*" "$out" \
    "rank 0: peer_lost: rank 1 on thishost was lost: $words"$'\n'"rank 2: peer_lost: rank 1 on thishost was lost: $words"
}

lost 137 "killed by signal 9 (SIGKILL)" only=1 kill
lost 0 "exited with code 0" only=1 exit=0
lost 3 "exited with code 3" only=1 exit=3
# A forked child that lives on and keeps every descriptor does not hide the loss.
lost 137 "killed by signal 9 (SIGKILL)" only=1 loader only=1 kill
# The same in a later epoch.
lost 137 "killed by signal 9 (SIGKILL)" rounds=3 only=1 kill

# A stopped rank could write to its peers' memory when it continues. It is killed, so that no peer waits for ever.
pids=()
for r in 0 1 2; do
  RANK=$r WORLD_SIZE=3 "$rank" sum only=2 stop lose >"$scratch/$r" 2>&1 </dev/null &
  pids+=($!)
done
until [ "$(sed 's/.*) //; s/ .*//' "/proc/${pids[2]}/stat")" = T ]; do sleep 0.01; done
kill -9 "${pids[1]}"
wait "${pids[0]}"
expect "exit code of rank 0 beside a stopped rank" "$?" 0
wait "${pids[2]}"
expect "exit code of the stopped rank" "$?" 137
expect "what rank 0 says" "$(cat "$scratch/0")" "rank 0: peer_lost: rank 1 on thishost was lost: killed by signal 9 (SIGKILL)"

# Two ranks are lost at about the same time.
by_hand 4 sum only=1 kill only=2 kill lose
[[ $codes = "0 "*137*" 0" ]] || fail "exit codes of two losses"
for r in 0 3; do expect_in "what rank $r says" "$out" "rank $r: peer_lost: rank "; done

# Rank 1 comes alone; then rank 1 does not come.
export HORO_START_TIMEOUT=1
RANK=1 WORLD_SIZE=3 try "$rank" sum
expect "exit code of a rank alone" "$code" 14
expect_in "the error" "$err" "rank 1 waited for rank 0"
RANK=1 WORLD_SIZE=3 HORO_START_TIMEOUT=0.1 timeout 20 "$rank" >/dev/null 2>&1
RANK=0 WORLD_SIZE=3 timeout 20 "$rank" 2>"$scratch/zero" &
RANK=2 WORLD_SIZE=3 try timeout 20 "$rank"
wait
expect_in "rank 2's error" "$err" "rank 1 did not call horo_init"
expect_in "rank 0's error" "$(cat "$scratch/zero")" "rank 1 did not call horo_init"

# A rank that does not belong to the job: it has another size, or its number is taken.
export HORO_START_TIMEOUT=3
RANK=0 WORLD_SIZE=3 timeout 20 "$rank" 2>/dev/null &
RANK=1 WORLD_SIZE=4 try timeout 20 "$rank"
expect_in "the error" "$err" "does not belong to the job of rank 0 of 3"
RANK=1 WORLD_SIZE=3 timeout 20 "$rank" 2>"$scratch/one" &
RANK=1 WORLD_SIZE=3 try timeout 20 "$rank"
wait
expect_in "one of two ranks 1" "$err $(cat "$scratch/one")" "rank 1 is already connected, as process"

# A process of another user at the meeting place is recognised.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  RANK=0 WORLD_SIZE=2 timeout 20 "$rank" 2>"$scratch/zero" &
  RANK=1 WORLD_SIZE=2 try timeout 20 setpriv --reuid=65534 --clear-groups "$rank"
  expect "exit code of another user" "$code" 14
  wait
fi
