#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks write as fast as they can. Every line arrives whole and memory stays bounded, also at the end of the job and after a
# kill.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

resident() { awk '/^VmRSS/ {print $2}' "/proc/$1/status"; }
launcher_of() { pgrep -P "$1" -x horo-run; }

# The bytes that the process and all that it has started have written so far.
written() {
  local pid sum=0 bytes
  for pid in "$1" $(pgrep -P "$1"); do
    [ "$pid" = "$1" ] || bytes=$(written "$pid")
    [ "$pid" != "$1" ] || bytes=$(sed -n 's/^wchar: //p' "/proc/$pid/io" 2>/dev/null)
    sum=$((sum + ${bytes:-0}))
  done
  echo $sum
}

# until_full PID: waits until nothing of the job of PID can write any more, because every buffer up to the paused reader is full.
until_full() {
  local same=0 last='' now
  while [ $same -lt 10 ]; do
    now=$(written "$1")
    if [ "$now" = "$last" ]; then same=$((same + 1)); else same=0; fi
    last=$now
    sleep 0.02
  done
}

# Binary data, and lines longer than any buffer, arrive unchanged.
head -c 300000 /dev/urandom >"$scratch/noise"
tr -d '\n\r' <"$scratch/noise" >"$scratch/long"
echo >>"$scratch/long"
try timeout 250 horo run -np 1 cat "$scratch/noise"
cmp -s "$scratch/out" "$scratch/noise" || fail "the binary data was changed"
timeout 250 horo run -np 3 --prefix '{rank}:' cat "$scratch/long" >"$scratch/out"
for rank in 0 1 2; do
  # If another rank's line comes between two parts of a long line, the second part begins with the prefix again.
  expect "bytes of rank $rank's long line" "$(LC_ALL=C grep -a "^$rank:" "$scratch/out" | LC_ALL=C sed "s/^$rank://" | tr -d '\n' | cksum)" \
    "$(tr -d '\n' <"$scratch/long" | cksum)"
done

# Eight ranks and a reader that pauses: memory stays small, and no line is lost or torn.
mkfifo "$scratch/pipe"
timeout 250 horo run -np 8 bash -c 'yes "$RANK xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx end" | head -n 100000; echo "last $RANK"' \
  >"$scratch/pipe" 2>"$scratch/err" &
job=$!
exec 3<"$scratch/pipe"
read -r _ <&3
until_full "$job"
launcher=$(launcher_of "$job")
if ! grep -q libasan "/proc/$launcher/maps"; then
  [ "$(resident "$launcher")" -lt 65536 ] || fail "the launcher holds $(resident "$launcher") kB"
fi
grep -Ecv '^\[([0-7])\] (\1 x{90} end|last \1)$' <&3 >"$scratch/wrong" &
counter=$!
exec 3<&-
wait "$job" || fail "the job ended with $?"
wait "$counter"
expect "torn lines" "$(<"$scratch/wrong")" 0
timeout 250 horo run -np 8 bash -c 'yes "$RANK" | head -n 200000; echo "last $RANK"' >"$scratch/out"
expect "lines" "$(wc -l <"$scratch/out")" 1600008
expect "last lines" "$(grep -c last "$scratch/out")" 8

# A rank that floods a paused reader delays the output of another rank by no more than its own window.
export scratch
timeout 250 horo run -np 2 bash -c '
  [ $RANK = 1 ] || exec yes
  until [ -e "$scratch/go" ]; do sleep 0.02; done
  echo word
  touch "$scratch/said"
  sleep 100' >"$scratch/pipe" 2>"$scratch/err" &
job=$!
exec 3<"$scratch/pipe"
read -r _ <&3
until_full "$job"
touch "$scratch/go"
until [ -e "$scratch/said" ]; do sleep 0.02; done
expect "words among the next 2 MB" "$(head -c 2000000 <&3 | grep -c word)" 1
kill -TERM "$job"
cat <&3 >/dev/null
exec 3<&-
wait "$job"

# Whatever is killed while ranks flood a paused reader, no process remains.
flooding() { pgrep -f "^yes flood of $$ and $1\$"; }
for victim in rank agent launcher; do
  horo run -np 4 yes "flood of $$ and $victim" >"$scratch/pipe" 2>"$scratch/err" </dev/null &
  job=$!
  exec 3<"$scratch/pipe"
  read -r _ <&3
  until [ "$(flooding $victim | wc -l)" = 4 ]; do sleep 0.02; done
  rank=$(flooding $victim | head -n 1)
  case $victim in
    rank) kill -KILL "$rank" ;;
    agent) kill -KILL "$(ps -o ppid= -p "$rank" | tr -d ' ')" ;;
    launcher) kill -KILL "$job" ;;
  esac
  cat <&3 >/dev/null
  exec 3<&-
  wait "$job"
  code=$?
  if [ $victim = agent ]; then wanted=125; else wanted=137; fi
  expect "exit code after kill -9 of the $victim" "$code" "$wanted"
  for ((i = 0; i < 500; i++)); do
    [ -n "$(flooding $victim)" ] || break
    sleep 0.02
  done
  expect "what is left after kill -9 of the $victim" "$(flooding $victim)" ""
done

# Output written before a kill or Ctrl-C is not lost.
for signal in INT TERM; do
  : >"$scratch/out" # Here, because the job's own redirection may come after the first look.
  timeout 250 horo run -np 2 bash -c 'trap "echo bye $RANK; exit 0" TERM; echo ready; while :; do sleep 0.02; done' >"$scratch/out" 2>"$scratch/err" &
  job=$!
  for ((i = 0; i < 500; i++)); do
    [ "$(grep -c ready "$scratch/out")" = 2 ] && break
    sleep 0.02
  done
  expect "ranks that are ready for SIG$signal" "$(grep -c ready "$scratch/out")" 2
  kill -$signal "$(launcher_of "$job")"
  wait "$job"
  code=$? out=$(<"$scratch/out") err=$(<"$scratch/err") # shown if a check fails
  expect "last words after SIG$signal" "$(grep -c bye "$scratch/out")" 2
done
timeout 250 horo run -np 2 bash -c 'echo "before $RANK"; [ $RANK = 0 ] || sleep 100; printf "half a line"; kill -KILL $$' >"$scratch/out" 2>"$scratch/err"
expect "exit code" "$?" 137
expect_in "last words of a killed rank" "$(<"$scratch/out")" "[0] half a line"

# If the reader closes the pipe, SIGPIPE ends the job like any other program. If SIGPIPE is ignored, the job continues.
timeout 250 horo run -np 2 yes 2>"$scratch/err" | head -n 1 >"$scratch/out"
code=${PIPESTATUS[0]} err=$(<"$scratch/err") out=$(<"$scratch/out")
expect "exit code" "$code" 141
expect_in "report" "$err" "the reader of the output has closed the pipe (SIGPIPE)"
timeout 250 env --ignore-signal=PIPE horo run -np 1 bash -c 'for ((i = 0; i < 20000; i++)); do echo "line $i"; done; exit 6' \
  2>"$scratch/err" | head -n 1 >"$scratch/out"
code=${PIPESTATUS[0]} err=$(<"$scratch/err")
expect "exit code" "$code" 6
expect_in "warning" "$err" "standard output: Broken pipe"
exit 0
