#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a real Slurm on this machine for tests, as root, with its packages slurm-wlm and munge, without systemd, cgroups or a
# database. Its virtual nodes h1 ... hN are several slurmd processes.
#
#   slurm_here.sh up FOLDER N     starts Slurm with all its files in FOLDER; SLURM_CONF=FOLDER/slurm.conf then works
#   slurm_here.sh down FOLDER     stops everything that `up` started
#
# SLURM_HERE_EXTRA: further lines of slurm.conf. SLURM_HERE_EXPIRE: seconds after which a requeued job may start, instead of
# two minutes. SLURM_HERE_ON=tests/hosts/hosts.sh: the nodes are the hosts of the machine that this script makes.
set -uo pipefail
PATH=/usr/sbin:/sbin:$PATH
on=${SLURM_HERE_ON:-}
action=${1:-} folder=${2:-} nodes=${3:-1}
export SLURM_CONF=$folder/slurm.conf

die() {
  echo "slurm_here: $*" >&2
  exit 1
}

# A process id is still ours if its start time is unchanged.
started_at() {
  local line
  read -r line 2>/dev/null <"/proc/$1/stat" || return 1
  # shellcheck disable=SC2086 # words
  set -- ${line##*) }
  echo "${20}"
}

# start NAME COMMAND...: starts COMMAND in a session of its own, and records it in $folder/NAME.started.
start() {
  local name=$1
  shift
  setsid "$@" </dev/null >"$folder/$name.out" 2>&1 &
  echo "$! $(started_at $!)" >"$folder/$name.started"
}

free_port() {
  local port
  for ((port = 20000 + RANDOM % 10000; ; port++)); do
    ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && echo "$port" && return
  done
}

configure() {
  local i port controller=127.0.0.1
  port=$(free_port)
  [ -z "$on" ] || controller=$(getent ahostsv4 "$(uname -n)" | head -n 1 | cut -d' ' -f1)
  cat <<CONF
ClusterName=here
SlurmctldHost=$(uname -n)($controller)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket${SLURM_HERE_EXPIRE:+,cred_expire=$SLURM_HERE_EXPIRE}
CredType=cred/munge
SlurmctldPort=$port
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,permit_job_expansion
KillWait=2
ReturnToService=2
CONF
  for ((i = 1; i <= nodes; i++)); do
    if [ -n "$on" ]; then
      echo "NodeName=h$i Port=$((port + i)) CPUs=4 RealMemory=500 State=UNKNOWN"
      continue
    fi
    echo "NodeName=h$i NodeHostname=$(uname -n) NodeAddr=127.0.0.1 Port=$((port + i)) CPUs=4 RealMemory=500 State=UNKNOWN"
  done
  echo "PartitionName=here Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
  printf '%s\n' "${SLURM_HERE_EXTRA:-}"
}

up() {
  local i
  command -v slurmctld slurmd munged >/dev/null || die "needs the packages slurm-wlm and munge"
  mkdir -p "$folder/state" || die "cannot make $folder"
  (umask 277 && head -c 1024 /dev/urandom >"$folder/munge.key")
  start munged munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munged.seed"
  for ((i = 0; i < 500; i++)); do
    [ -S "$folder/munge.socket" ] && break
    sleep 0.02
  done
  configure >"$SLURM_CONF"
  start slurmctld slurmctld -D -f "$SLURM_CONF"
  for ((i = 1; i <= nodes; i++)); do start "slurmd.h$i" ${on:+bash "$on" on "h$i"} slurmd -D -N "h$i" -f "$SLURM_CONF"; done
  for ((i = 0; i < 300; i++)); do
    [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" -ge "$nodes" ] && return 0
    sleep 0.1
  done
  die "its nodes did not come up: $(tail -n 3 "$folder"/*.log "$folder"/*.out 2>&1)"
}

down() {
  local signal file pid time i
  for signal in TERM KILL; do
    for file in "$folder"/slurmd.*.started "$folder"/slurmctld.started "$folder"/munged.started; do
      [ -f "$file" ] || continue
      read -r pid time <"$file"
      for ((i = 0; i < 200; i++)); do
        [ "$(started_at "$pid")" = "$time" ] || break
        [ "$i" != 0 ] || kill -s "$signal" "$pid"
        sleep 0.02
      done
    done
  done
}

case $action in
  up) up ;;
  down) down ;;
  *) sed -n '3,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" ;;
esac
