# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the scripts beside it, on top of tests/cli/lib.sh: `on_hosts N` continues the script on a machine beside N hosts.
# shellcheck source=tests/cli/lib.sh
. "$HORO_SOURCE/tests/cli/lib.sh"

skip() {
  echo "skipped: $*"
  exit 77
}

hosts() { bash "$HORO_SOURCE/tests/hosts/hosts.sh" "$@"; }
on() { hosts on "$@"; }
processes() { hosts processes "$1"; }

on_hosts() {
  [ -z "${HOSTS_INSIDE:-}" ] || return 0
  rm -rf "$scratch"
  # In place of this process, so that whoever kills it ends all.
  HOSTS_INSIDE=$1 exec bash "$HORO_SOURCE/tests/hosts/hosts.sh" run "$1" bash "$0"
}

# eventually WHAT CONDITION: waits for it, for half a minute at most.
eventually() {
  local i
  for ((i = 0; i < 1500; i++)); do
    ! eval "$2" || return 0
    sleep 0.02
  done
  fail "never came: $1"
}

# nothing_left HOST...: no process of any job is there any more.
nothing_left() {
  local host
  for host in "$@"; do
    eventually "the end of all processes on $host: $(processes "$host")" '[ -z "$(processes "$host")" ]'
  done
}
