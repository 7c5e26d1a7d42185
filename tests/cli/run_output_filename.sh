#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --output-filename writes a folder per rank, in addition to the screen.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

try timeout 30 horo run -np 11 --output-filename "$scratch/a/b" sh -c 'echo "out $RANK"; echo "err $RANK" >&2'
expect "exit code" "$code" 0
expect "folders" "$(cd "$scratch/a/b" && echo *)" \
  "rank.00 rank.01 rank.02 rank.03 rank.04 rank.05 rank.06 rank.07 rank.08 rank.09 rank.10"
expect "file of standard output" "$(cat "$scratch/a/b/rank.03/stdout")" "out 3"
expect "file of standard error" "$(cat "$scratch/a/b/rank.10/stderr")" "err 10"
expect_in "screen" "$out" "[3] out 3"

# Earlier content is removed. Horovod's files contain the tag.
try timeout 30 horo run --horovod -np 1 --output-filename "$scratch/a/b" echo again
expect "file" "$(cat "$scratch/a/b/rank.0/stdout")" "[0]<stdout>:again"

# The report names the folder of the files.
try timeout 30 horo run -np 2 --output-filename "$scratch/logs" sh -c 'exit $RANK'
expect_in "report" "$err" "output: $scratch/logs/rank.1, of all ranks: $scratch/logs"

# If the files cannot be written, no rank starts.
touch "$scratch/file"
refused "'$scratch/file/logs'" horo run -np 2 --output-filename "$scratch/file/logs" touch "$scratch/started"
[ ! -e "$scratch/started" ] || fail "a rank was started"
if [ "$(id -u)" -ne 0 ]; then
  mkdir "$scratch/locked"
  chmod 500 "$scratch/locked"
  refused "'$scratch/locked/logs'" horo run -np 2 --output-filename "$scratch/locked/logs" true
fi

# More files are needed than the process may open at first.
try timeout 60 bash -c "ulimit -Sn 64; exec horo run -np 40 --output-filename '$scratch/many' sh -c 'echo \$RANK'"
expect "exit code" "$code" 0
expect "file of the last rank" "$(cat "$scratch/many/rank.39/stdout")" 39
try timeout 60 bash -c "ulimit -n 64; exec horo run -np 4 --output-filename '$scratch/few' sh -c 'echo \$RANK'"
expect "exit code" "$code" 0
expect "file of the last rank" "$(cat "$scratch/few/rank.3/stdout")" 3

# A pipe in the place of an output file: one that nothing reads is an error at once.
mkdir -p "$scratch/pipes/rank.0"
mkfifo "$scratch/pipes/rank.0/stdout"
refused "the output file '$scratch/pipes/rank.0/stdout' is a pipe that nothing reads; start its reader first" \
  timeout 30 horo run -np 1 --output-filename "$scratch/pipes" true
