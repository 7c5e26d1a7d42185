# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the scripts in this folder: a script sources this file, then calls `try` and `expect`.
# HORO_BIN is the folder of the tools, HORO_SOURCE the root of the source. $scratch is an empty folder of this script.
set -uo pipefail

scratch=$(mktemp -d "${TMPDIR:-/tmp}/horo-cli-XXXXXX")
# A job that a signal ends before bash has executed its program runs this trap, too. So a script signals a job only when the
# job has written something, into a file that was empty before.
trap 'rm -rf "$scratch"' EXIT
PATH="$HORO_BIN:$PATH"
# The caller's variables must not change the results.
for variable in "${!HORO_@}" "${!HOROVOD_@}" "${!SLURM_@}" "${!LSB_@}" "${!PBS_@}"; do
  case $variable in HORO_BIN | HORO_SOURCE | HORO_TEST_STARTS) ;; *) unset "$variable" ;; esac
done

# try COMMAND...: runs COMMAND. $code is its exit code; $out and $err are its standard output and standard error.
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
  echo "${0##*/}: $*" >&2 # Last, because some readers see only the end of a log.
  exit 1
}

# expect WHAT GOT WANTED: fails unless GOT and WANTED are equal.
expect() { [ "$2" = "$3" ] || fail "$1 is '$2', not '$3'"; }

# expect_in WHAT TEXT PART: fails unless TEXT contains PART.
expect_in() { case $2 in *"$3"*) ;; *) fail "$1 lacks '$3'" ;; esac; }

# refused MESSAGE COMMAND...: COMMAND fails with exit code 2 and one line on standard error that contains MESSAGE; standard
# output is empty.
refused() {
  local message=$1
  shift
  try "$@"
  expect "exit code of $*" "$code" 2
  expect "standard output of $*" "$out" ""
  expect "number of lines of $*" "$(wc -l <"$scratch/err")" 1
  expect_in "error of $*" "$err" "$message"
}
