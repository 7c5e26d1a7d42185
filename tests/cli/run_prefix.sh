#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each line gets a prefix, and lines stay whole.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

say='echo "out $RANK"; echo "err $RANK" >&2'

try timeout 30 horo run -np 2 sh -c "$say"
expect "standard output" "$(sort <<<"$out")" "[0] out 0
[1] out 1"
expect "standard error" "$(sort <<<"$err")" "[0] err 0
[1] err 1"

try timeout 30 horo run -np 1 sh -c "$say"
expect "standard output of one rank" "$out" "out 0"
try timeout 30 horo run -np 1 --tag rank sh -c "$say"
expect "standard output of one tagged rank" "$out" "[0] out 0"
try timeout 30 horo run -np 2 --tag off sh -c "$say"
expect "standard output without tags" "$(sort <<<"$out")" "out 0
out 1"
try timeout 30 horo run -np 2 --prefix '{host}:{local_rank}/{size} {stream}> ' sh -c "$say"
expect_in "standard output" "$out" "localhost:1/2 stdout> out 1"
expect_in "standard error" "$err" "localhost:0/2 stderr> err 0"
refused "prefix '{rnk}' has an unknown field {rnk}" horo run -np 2 --prefix '{rnk}' true
refused "has a single '{'" horo run -np 2 --prefix '{rank' true

# Horovod's form of the prefix.
try timeout 30 horo run --horovod -np 2 sh -c "$say"
expect "standard output" "$(sort <<<"$out")" "[0]<stdout>:out 0
[1]<stdout>:out 1"
try timeout 30 horo run --horovod -np 2 -prefix-timestamp sh -c "$say"
grep -Eq '^[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4}\[1\]<stdout>:out 1$' <<<"$out" ||
  fail "no asctime in front of the tag"
try timeout 30 horo run -np 2 -prefix-timestamp sh -c "$say"
grep -Eq '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{3} \[1\] out 1$' <<<"$out" || fail "no time in front of the tag"

# No end of line is added or lost, and a progress bar keeps its carriage returns.
try timeout 30 horo run -np 1 --tag rank sh -c 'printf "10%%\r20%%\rno end"'
expect "bytes" "$(od -c <"$scratch/out" | tr -s ' ')" "$(printf '[0] 10%%\r[0] 20%%\r[0] no end' | od -c | tr -s ' ')"

# The bytes of one character stay together even if they arrive separately.
try timeout 30 horo run -np 1 --tag rank sh -c 'printf "a\303"; sleep 0.1; printf "\251b\n"'
expect "character" "$out" "[0] aéb"

# Many ranks write many lines: no line is torn or lost.
try timeout 60 horo run -np 4 bash -c 'for ((i = 0; i < 5000; i++)); do echo "$RANK $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx end"; done'
expect "exit code" "$code" 0
expect "number of lines" "$(grep -Ec '^\[([0-3])\] \1 [0-9]+ x{31} end$' <<<"$out")" 20000

# Colours appear only on a terminal, and not under NO_COLOR.
on_terminal() { timeout 30 script -qec "$1" /dev/null </dev/null; }
if command -v script >/dev/null; then
  unset NO_COLOR
  export TERM=xterm
  expect_in "terminal" "$(on_terminal 'horo run -np 2 echo hi')" $'\e[0mhi'
  case $(NO_COLOR=1 on_terminal 'horo run -np 2 echo hi') in *$'\e'*) fail "colour under NO_COLOR" ;; esac
  case $(TERM=dumb on_terminal 'horo run -np 2 echo hi') in *$'\e'*) fail "colour on a dumb terminal" ;; esac
else
  echo "not checked: colours (script is not installed)"
fi
