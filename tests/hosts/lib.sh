# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the scripts in this folder, in addition to tests/cli/lib.sh: `on_hosts N` continues the script on a machine with
# N hosts beside it.
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
  # Replaces this process, so that killing it ends everything.
  HOSTS_INSIDE=$1 exec bash "$HORO_SOURCE/tests/hosts/hosts.sh" run "$1" bash "$0"
}

# eventually WHAT CONDITION: waits up to half a minute until CONDITION is true.
eventually() {
  local i
  for ((i = 0; i < 1500; i++)); do
    ! eval "$2" || return 0
    sleep 0.02
  done
  fail "this never happened: $1"
}

# nothing_left HOST...: waits until no process of a job is left on these hosts.
nothing_left() {
  local host
  for host in "$@"; do
    eventually "the end of all processes on $host: $(processes "$host")" '[ -z "$(processes "$host")" ]'
  done
}
