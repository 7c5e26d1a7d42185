# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # tests/cli/lib.sh and the scripts have the other end of these variables.
# Shared by the scripts in this folder. A script sources tests/cli/lib.sh first. TRAINEE is the training program.
folder=$scratch/train
job=0

# begin OPTION...: starts a job of the training in an empty folder, with these options of horo run. Its output is in
# $scratch/out and $scratch/err, and its process is $job. $steps: the steps of the training, 0 by default.
begin() {
  rm -rf "$folder"
  mkdir "$folder"
  : >"$scratch/out"
  : >"$scratch/err"
  [ -z "${prepare-}" ] || $prepare
  horo run "$@" "$TRAINEE" "$folder" "${steps-0}" "${ms-20}" >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
}

# until_out PATTERN [COUNT]: waits until COUNT lines of the job's output match.
until_out() {
  for ((i = 0; i < 600; i++)); do
    [ "$(grep -cE "$1" "$scratch/out")" -lt "${2-1}" ] || return 0
    kill -0 $job 2>/dev/null || break
    sleep 0.1
  done
  [ "$(grep -cE "$1" "$scratch/out")" -lt "${2-1}" ] || return 0
  out=$(<"$scratch/out") err=$(<"$scratch/err")
  fail "no ${2-1} lines '$1' came"
}

# finish: waits for the job's end, and sets $code, $out and $err. Nothing of the job is left then. (Processes of other hosts have
# numbers of their own: tests/hosts looks for them.)
finish() {
  wait $job
  code=$?
  out=$(<"$scratch/out") err=$(<"$scratch/err")
  [ -z "${HOSTS_INSIDE-}" ] || return 0
  for file in "$folder"/pid.*; do
    [ -e "$file" ] || continue
    ! kill -0 "$(<"$file")" 2>/dev/null || fail "${file##*/} is still there"
  done
}

pid_of() { cat "$folder/pid.$1"; }

# ask COMMAND...: like try, but leaves the job's output alone.
ask() {
  "$@" >"$scratch/answer" 2>"$scratch/refusal" </dev/null
  code=$?
  out=$(<"$scratch/answer") err=$(<"$scratch/refusal")
}
