# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the scripts in this folder, in addition to tests/cli/lib.sh: starts ranks without `horo run`. STANDALONE_RANK is
# the program made from rank.c.
# shellcheck source=tests/cli/lib.sh
. "$HORO_SOURCE/tests/cli/lib.sh"
rank=$STANDALONE_RANK
export HORO_START_TIMEOUT=${HORO_START_TIMEOUT:-20}
# The variables of a launcher that started this test do not apply to its ranks.
for variable in "${!OMPI_@}" "${!PMI@}" "${!SLURM_@}" "${!TORCHELASTIC_@}" RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE; do
  unset "$variable"
done

skip() {
  echo "skipped: $*"
  exit 77
}

# needs PROGRAM PACKAGE: skips the script if PROGRAM is not installed.
needs() { command -v "$1" >/dev/null || skip "no $1 here; scripts/packages --install test brings it ($2)"; }

# by_hand RANKS WORD...: starts ranks as a shell would, each in the background. $codes has their exit codes; $out and $err
# have their output.
by_hand() {
  local ranks=$1 r pids=()
  shift
  : >"$scratch/out"
  : >"$scratch/err"
  for ((r = 0; r < ranks; r++)); do
    RANK=$r WORLD_SIZE=$ranks timeout 60 "$rank" "$@" >>"$scratch/out" 2>>"$scratch/err" </dev/null &
    pids+=($!)
  done
  codes=
  for r in "${pids[@]}"; do
    wait "$r"
    codes+="${codes:+ }$?"
  done
  out=$(sort "$scratch/out")
  err=$(cat "$scratch/err")
  # shellcheck disable=SC2034 # for fail
  code=$codes
}
