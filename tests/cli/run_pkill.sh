#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Nothing of a job stays when its launcher and agent are killed by name, or stopped by a rank. Each case runs in a process
# namespace of its own, with control groups and without: the patterns below hit no other process.
# shellcheck disable=SC2016 # The shells of the namespace expand it, not this script.
source "${HORO_SOURCE:?}/tests/cli/lib.sh"

if ! unshare --pid --fork --mount --mount-proc true 2>"$scratch/why"; then
  echo "no process namespace can be made here: not tested: $(<"$scratch/why")"
  exit 77
fi

# A rank whose grandchildren have sessions of their own. No command line of its processes contains the name that is killed.
rank=/tmp/rank.$$
trap 'rm -rf "$scratch" "$rank"' EXIT
cat >"$rank" <<'END'
setsid sh -c 'echo up; exec sleep 98765' &
(setsid sh -c 'sleep 98765 & echo up; exec sleep 98765' &)
exec sleep 98765
END

# in_namespace GROUPS COMMAND: COMMAND runs in bash, the first process of a namespace. GROUPS: with or without control groups.
in_namespace() {
  export RANK=$rank OUT=$scratch/namespace GROUPS_WANTED=$1
  rm -rf "$OUT"
  mkdir "$OUT"
  timeout 100 unshare --pid --fork --mount --mount-proc bash -c '
    mount --make-rprivate /
    umount -R /sys/fs/cgroup 2>/dev/null
    if [ $GROUPS_WANTED = with ]; then mount -t cgroup2 none /sys/fs/cgroup || exit 77; fi
    mkfifo $OUT/said $OUT/go
    # start LINES COMMAND: runs a job of two ranks until it has said so many lines.
    start() {
      local lines=$1 word
      shift
      horo run -np 2 --tag off --stdin none "$@" >$OUT/said 2>$OUT/err &
      exec 3<$OUT/said
      while [ $((lines--)) != 0 ]; do read -r word <&3 || exit 3; done
      all=($(ps -e -o pid=,comm= | while read -r pid name; do [ $pid = 1 ] || [ $name = ps ] || [ $name = bash ] || echo $pid; done))
    }
    gone() {
      for pid in "${all[@]}"; do
        timeout 30 tail --pid=$pid -f /dev/null || { echo "left: $(ps -e -o pid,ppid,stat,args)"; exit 4; }
      done
    }
    '"$2" >"$scratch/said" 2>&1
  code=$?
  [ $code = 77 ] && echo "no control groups can be mounted here: not tested with them"
  out=$(<"$scratch/said")
  err=$(cat "$OUT/err")
}

for groups in with without; do
  for how in "" -f; do
    export HOW=$how
    # The agent and the launcher have the name; the guard must not.
    in_namespace $groups '
      start 4 sh $RANK
      pgrep -x horo-agent && pgrep -x job-guard && pgrep -x job-sweep || exit 6
      [ ${#all[@]} -ge 12 ] || exit 7
      pkill -9 $HOW horo
      gone'
    [ $code = 77 ] || expect "end of the namespace after pkill -9 $how horo, $groups control groups" $code 0
  done
done

# A rank stops its agent and the guard, kills the launcher, and goes on.
cat >"$rank" <<'END'
agent=$PPID
guard=$(ps -o ppid= -p $agent)
echo up
[ $HORO_RANK = 0 ] || exec sleep 98765
read -r word <$OUT/go
kill -STOP $agent $guard
kill -KILL $(ps -o ppid= -p $guard)
setsid sleep 98765 &
exec sleep 98765
END
for groups in with without; do
  in_namespace $groups '
    start 2 sh $RANK
    echo go >$OUT/go
    gone
    left=$(pgrep -x sleep) && exit 8
    exit 0'
  [ $code = 77 ] || expect "end of the namespace after a rank stopped guard and agent, $groups control groups" $code 0
done
