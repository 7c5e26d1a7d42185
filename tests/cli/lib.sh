# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the scripts beside this one: source it, then `try` and `expect`.
# HORO_BIN: folder of the tools; HORO_SOURCE: root of the source. $scratch is an empty folder of this script.
set -uo pipefail

scratch=$(mktemp -d "${TMPDIR:-/tmp}/horo-cli-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
PATH="$HORO_BIN:$PATH"
# What the caller has set must not decide here.
for variable in "${!HORO_@}" "${!HOROVOD_@}" "${!SLURM_@}" "${!LSB_@}" "${!PBS_@}"; do
  case $variable in HORO_BIN | HORO_SOURCE) ;; *) unset "$variable" ;; esac
done

# try COMMAND...: runs it; $code, $out and $err are what it ended with and wrote.
try() {
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
  out=$(tr -d '\0' <"$scratch/out")
  err=$(tr -d '\0' <"$scratch/err")
}

fail() {
  echo "  exit code: ${code-}" >&2
  echo "  standard output: ${out-}" >&2
  echo "  standard error: ${err-}" >&2
  echo "${0##*/}: $*" >&2 # Last, for those who see only the end of a log.
  exit 1
}

# expect WHAT GOT WANTED: the same text.
expect() { [ "$2" = "$3" ] || fail "$1 is '$2', not '$3'"; }

# expect_in WHAT TEXT PART: the part stands somewhere in the text.
expect_in() { case $2 in *"$3"*) ;; *) fail "$1 lacks '$3'" ;; esac; }

# refused MESSAGE COMMAND...: a usage error of one line that contains the message, nothing on standard output.
refused() {
  local message=$1
  shift
  try "$@"
  expect "exit code of $*" "$code" 2
  expect "standard output of $*" "$out" ""
  expect "number of lines of $*" "$(wc -l <"$scratch/err")" 1
  expect_in "error of $*" "$err" "$message"
}
