#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Several hosts on one Linux machine, for tests. Each host has its own processes, network, host name, /dev/shm, and an sshd
# on port 22. Files are shared, as in a cluster with a shared home. Needs root and the packages iproute2 and openssh-server.
# Nothing outlives the command, even if this script is killed: all processes are in one PID namespace, the network namespaces
# have no names, and the files are in a tmpfs of their own.
#
#   hosts.sh run N COMMAND...    runs the command on a machine `head` (10.83.0.254) with hosts h1 (10.83.0.1) ... hN
#                                beside it, and ends with its exit code, or 77 if this machine cannot have such hosts.
#                                root's home there is empty except for known_hosts and a key that is accepted everywhere.
# Commands for use on head:
#   hosts.sh on HOST COMMAND...  runs the command on that host, without ssh
#   hosts.sh cut HOST            disconnects the host's network: silence, and no connection is closed
#   hosts.sh heal HOST
#   hosts.sh drop FROM TO        loses all that goes from one to the other, in silence; each is a host or head
#   hosts.sh carry FROM TO       ends that
#   hosts.sh off HOST            disconnects the network, then kills all processes of the host
#   hosts.sh crash HOST          kills all processes of the host; its kernel closes their connections
#   hosts.sh rail HOST           gives the host a second interface, eth1 (10.84.0.N), on a network of its own
#   hosts.sh shape HOST [rate 100mbit] [delay 20ms] [lose 100] [deny out|in[:ADDRESS]]    limits each direction, loses every 100th frame,
#                                or leaves out what opens a TCP connection from (out) or to (in) the host, but for ssh, to this
#                                address if there is one;
#                                without arguments, removes all that
#   hosts.sh processes HOST      lists the processes of the host except its sshd, one per line
set -uo pipefail
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
self=$(readlink -f "${BASH_SOURCE[0]}")
folder=/run/horo-hosts # in a tmpfs of head
net=10.83.0

die() {
  echo "hosts.sh: $*" >&2
  exit 1
}

skip() {
  echo "skipped: $*"
  exit 77
}

number_of() {
  if ! [[ $1 =~ ^h([1-9][0-9]*)$ && -f $folder/$1.pid ]]; then die "no host '$1' here"; fi
  echo "${BASH_REMATCH[1]}"
}

check_tools() {
  local tool
  [ "$(id -u)" = 0 ] || skip "needs root to make network namespaces"
  for tool in ip:iproute2 sshd:openssh-server ssh-keygen:openssh-client unshare:util-linux; do
    command -v "${tool%:*}" >/dev/null || skip "no ${tool%:*} here; scripts/packages --install test brings it (${tool#*:})"
  done
  unshare --net --pid --mount --fork true 2>/dev/null || skip "cannot make namespaces here"
}

# on_either HOST COMMAND...: on head or a host.
on_either() {
  local host=$1
  shift
  if [ "$host" = head ]; then "$@"; else bash "$self" on "$host" "$@"; fi
}

# neighbour VERB FROM TO: FROM sends what is for TO to an address that nobody has, until VERB is del.
neighbour() {
  local address=$net.254 link=eth0 nobody=()
  [ "$3" = head ] || address=$net.$(number_of "$3") || exit 1
  [ "$2" != head ] || link=br0
  [ "$1" = del ] || nobody=(lladdr 02:00:00:00:fe:fe nud permanent)
  on_either "$2" ip neigh "$1" "$address" dev "$link" ${nobody[@]+"${nobody[@]}"}
}

# The login of every host is root with an empty home. The real home may be slow to log in to, and tests must not write to it.
make_login() {
  local i
  mkdir -p "$folder" /run/sshd /run/home/.ssh
  chmod 700 /run/home/.ssh
  sed 's|^\(root:[^:]*:0:[^:]*:[^:]*\):[^:]*:|\1:/run/home:|' /etc/passwd >"$folder/passwd"
  mount --bind "$folder/passwd" /etc/passwd
  printf '127.0.0.1 localhost\n::1 localhost\n%s.254 head\n' "$net" >"$folder/hosts"
  ssh-keygen -q -t ed25519 -N '' -C head -f /run/home/.ssh/id_ed25519
  cp /run/home/.ssh/id_ed25519.pub /run/home/.ssh/authorized_keys
  for ((i = 1; i <= $1; i++)); do
    ssh-keygen -q -t ed25519 -N '' -C "h$i" -f "$folder/h$i.key"
    echo "h$i,$net.$i $(cut -d' ' -f1,2 "$folder/h$i.key.pub")" >>/run/home/.ssh/known_hosts
    echo "$net.$i h$i" >>"$folder/hosts"
  done
  mount --bind "$folder/hosts" /etc/hosts
}

# Runs as process 1 of a host.
be_host() {
  local i
  hostname "h$1"
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  for ((i = 0; i < 500; i++)); do
    ip link show eth0 >/dev/null 2>&1 && break
    sleep 0.01
  done
  ip link set lo up
  ip addr add "$net.$1/24" dev eth0 || die "h$1 has no network"
  ip link set eth0 up
  cat >"$folder/h$1.conf" <<CONF
ListenAddress $net.$1:22
HostKey $folder/h$1.key
AuthorizedKeysFile /run/home/.ssh/authorized_keys
PasswordAuthentication no
StrictModes no
UsePAM no
UseDNS no
PidFile none
PrintMotd no
MaxStartups 500
LogLevel VERBOSE
CONF
  [ -f "$folder/sshd_extra" ] && cat "$folder/sshd_extra" >>"$folder/h$1.conf"
  while :; do # as process 1, bash reaps orphans while it waits
    "$(command -v sshd)" -D -e -f "$folder/h$1.conf" >>"$folder/h$1.log" 2>&1 &
    wait $!
    sleep 0.2
  done
}

start_host() {
  local i init=
  setpriv --pdeathsig KILL unshare --net --mount --uts --ipc --pid --fork --kill-child=KILL --mount-proc \
    bash "$self" be_host "$1" </dev/null >>"$folder/h$1.log" 2>&1 &
  for ((i = 0; i < 500; i++)); do
    read -r init <"/proc/$!/task/$!/children" # the file's only line has no end of line
    [ -n "$init" ] && break
    sleep 0.01
  done
  init=${init%% *}
  [ -n "$init" ] || die "h$1 did not start: $(cat "$folder/h$1.log")"
  echo "$init" >"$folder/h$1.pid"
  ip link add "p$1" type veth peer name eth0 netns "$init" || skip "this kernel has no veth pairs"
  ip link set "p$1" master br0 up
}

await_sshd() {
  local i
  for ((i = 0; i < 500; i++)); do
    grep -q 'Server listening' "$folder/h$1.log" && return
    sleep 0.02
  done
  die "h$1 has no sshd: $(tail -n 5 "$folder/h$1.log")"
}

# Runs as process 1 of the test machine.
be_head() {
  local i hosts=$1
  shift
  mount -t tmpfs -o mode=755 tmpfs /run
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  hostname head
  make_login "$hosts"
  ip link set lo up
  ip link add br0 type bridge stp_state 0 forward_delay 0 || skip "this kernel has no bridges"
  ip addr add "$net.254/24" dev br0 && ip link set br0 up
  for ((i = 1; i <= hosts; i++)); do start_host "$i"; done
  for ((i = 1; i <= hosts; i++)); do await_sshd "$i"; done
  unset SSH_AUTH_SOCK SSH_CONNECTION SSH_CLIENT SSH_TTY
  HOME=/run/home "$@"
}

# A second network of the hosts, which head is not in.
rail() {
  local n
  n=$(number_of "$1") || exit 1
  ip link show br1 >/dev/null 2>&1 || ip link add br1 type bridge stp_state 0 forward_delay 0 || die "no second bridge"
  ip link set br1 up
  ip link add "q$n" type veth peer name eth1 netns "$(<"$folder/$1.pid")" || die "no second interface"
  ip link set "q$n" master br1 up
  bash "$self" on "$1" ip addr add "10.84.0.$n/24" dev eth1
  bash "$self" on "$1" ip link set eth1 up
}

on_host() {
  local host=$1
  shift
  number_of "$host" >/dev/null
  exec nsenter -t "$(<"$folder/$host.pid")" --net --uts --ipc --pid --mount setpriv --pdeathsig KILL \
    bash -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "$@"
}

# A forwarder between the host's port and the bridge delays the frames, because not every kernel has netem.
undelay() {
  [ -f "$folder/h$1.late" ] || return 0
  kill -KILL "$(<"$folder/h$1.late")"
  rm "$folder/h$1.late"
  ip link del "late$1"
  ip link set "p$1" master br0
}

delay() {
  local i
  ip link set "p$1" nomaster
  ip link add "late$1" type veth peer name "bridge$1"
  ip link set "bridge$1" master br0 up
  ip link set "late$1" up
  : >"$folder/h$1.late.log"
  setsid python3 "${self%/*}/late.py" "p$1" "late$1" "${@:2}" >"$folder/h$1.late.log" 2>&1 </dev/null &
  echo $! >"$folder/h$1.late"
  for ((i = 0; i < 500; i++)); do
    grep -q ready "$folder/h$1.late.log" && return
    sleep 0.01
  done
  die "no delay: $(<"$folder/h$1.late.log")"
}

shape() {
  local n side link links limit delay='' late=()
  n=$(number_of "$1") || exit 1
  shift
  undelay "$n"
  links=("p$n:eth0")
  ip link show "q$n" >/dev/null 2>&1 && links+=("q$n:eth1")
  for link in "${links[@]}"; do
    tc qdisc del dev "${link%:*}" root 2>/dev/null
    bash "$self" on "h$n" tc qdisc del dev "${link#*:}" root 2>/dev/null
  done
  while [ $# -ge 2 ]; do
    case $1 in
      rate)
        limit=(tbf rate "$2" burst 128kb latency 200ms)
        for link in "${links[@]}"; do
          for side in "tc qdisc replace dev ${link%:*} root" "bash $self on h$n tc qdisc replace dev ${link#*:} root"; do
            # shellcheck disable=SC2086 # words
            $side "${limit[@]}" || die "tc refuses rate $2"
          done
        done ;;
      delay) delay=$2 ;;
      lose | deny) late+=("$1=$2") ;;
      *) die "shape knows rate, delay, lose and deny, not '$1'" ;;
    esac
    shift 2
  done
  [ -z "$delay${late[*]:-}" ] || delay "$n" "${delay:-0ms}" "${late[@]}"
}

action=${1:-}
[ $# = 0 ] || shift
case $action in
  run)
    check_tools
    exec setpriv --pdeathsig KILL unshare --net --mount --uts --ipc --pid --fork --kill-child=KILL --mount-proc \
      bash "$self" be_head "$@" ;;
  be_head) be_head "$@" ;;
  be_host) be_host "$1" ;;
  on) on_host "$@" ;;
  cut) n=$(number_of "$1") && ip link set "p$n" down ;;
  heal) n=$(number_of "$1") && ip link set "p$n" up ;;
  drop) neighbour replace "$1" "$2" ;;
  carry) neighbour del "$1" "$2" ;;
  off) n=$(number_of "$1") && ip link set "p$n" down && kill -KILL "$(<"$folder/$1.pid")" ;;
  crash) number_of "$1" >/dev/null && kill -KILL "$(<"$folder/$1.pid")" ;;
  rail) rail "$1" ;;
  shape) shape "$@" ;;
  processes)
    # Leaves out process 1, its sshd, and the processes of this command.
    bash "$self" on "$1" bash -c '
      for folder in /proc/[0-9]*; do
        pid=${folder#/proc/}
        read -r line 2>/dev/null <"$folder/stat" || continue
        parent=$(cut -d" " -f2 <<<"${line##*) }")
        { [ "$pid" != 1 ] && [ "$pid" != $$ ] && [ "$parent" != $$ ]; } || continue
        command=$(tr "\0" " " 2>/dev/null <"$folder/cmdline")
        [[ $parent = 1 && $command = *sshd*listener* ]] || [[ $parent = 1 && $command = "sleep 0.2 " ]] ||
          echo "$pid (child of $parent) $(<"$folder/comm") $command"
      done 2>/dev/null' ;;
  *)
    sed -n '3,/^set/{/^set/!s/^# \{0,1\}//p}' "$self"
    [ "$action" = --help ] || exit 2 ;;
esac
