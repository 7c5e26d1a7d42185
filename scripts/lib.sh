# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by demo, check and packages: steps with times and logs, root privilege, the choice of Python. Sourced, never run.
# Needs only bash and coreutils, because the machine may have nothing else yet.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$root/build/logs
# shellcheck disable=SC2034 # read by the scripts that source this
started_us=${EPOCHREALTIME//[.,]/}

# Prints the seconds since the time $1 in microseconds, with one decimal.
seconds_since() {
  local tenths=$(((${EPOCHREALTIME//[.,]/} - $1) / 100000))
  echo "$((tenths / 10)).$((tenths % 10))"
}

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# step NAME WORDS COMMAND...: runs COMMAND with its output in build/logs/NAME.log and prints one line with its time and how
# many cores of the machine were busy meanwhile; on failure also the end of the log. Returns the command's status.
step() {
  local words=$2 log=$logs/$1.log mark=${EPOCHREALTIME//[.,]/} used rc=0
  shift 2
  mkdir -p "$logs"
  printf '  %-62s' "$words"
  used=$(busy_us)
  "$@" >"$log" 2>&1 </dev/null || rc=$?
  printf '%7s s %5s cores busy' "$(seconds_since "$mark")" "$(busy_cores_since "$mark" "$used")"
  if [ $rc -eq 0 ]; then
    echo
  else
    printf '  FAILED (exit %d)\n' "$rc"
    tail -n "${HORO_TAIL:-40}" "$log" | sed 's/^/    | /'
    echo "    whole log: ${log#"$root"/}"
  fi
  return $rc
}

# The time in microseconds that the cores of this machine have been busy since it started.
busy_us() {
  local user nice system irq softirq
  read -r _ user nice system _ _ irq softirq _ </proc/stat
  echo $(((user + nice + system + irq + softirq) * 10000))
}

# How many cores were busy on average since time $1 in microseconds, when busy_us was $2.
busy_cores_since() {
  local now=${EPOCHREALTIME//[.,]/} tenths
  tenths=$((10 * ($(busy_us) - $2) / (now > $1 ? now - $1 : 1)))
  echo "$((tenths / 10)).$((tenths % 10))"
}

# Runs a command as root: directly, or through sudo.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "must install packages, but the user is not root and sudo is not installed: run as root 'scripts/packages --install'"
  fi
}

# Prints the first Python that has the given modules: HORO_PYTHON, python3 of PATH, Debian's, build/venv.
find_python() {
  local python
  for python in "${HORO_PYTHON:-}" "$(command -v python3 || true)" /usr/bin/python3 "$root/build/venv/bin/python3"; do
    if [ -n "$python" ] && python_has "$python" "$@"; then
      echo "$python"
      return 0
    fi
  done
  return 1
}

# Whether Python $1 has all modules that follow. It only searches for them, because importing torch takes seconds.
python_has() {
  [ -x "$1" ] && "$1" - "${@:2}" <<'PY' 2>/dev/null
import importlib.util, sys
sys.exit(any(importlib.util.find_spec(module) is None for module in sys.argv[1:]))
PY
}
