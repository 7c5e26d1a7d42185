#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Output of many ranks on one screen: --fold, --ranks, progress bars and prompts.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

export scratch
mkfifo "$scratch/start"
# Makes ranks write at the same time, however late a busy machine starts them. A rank holds the pipe open before it says that it is
# here, so that its line waits in the pipe.
together='exec 3<>"$scratch/start"; touch "$scratch/here.$RANK"; read -r _ <&3; exec 3<&-; '

# folded COUNT WANTED COMMAND...: the output of COMMAND with COUNT ranks that write together, without a terminal's line ends.
# One success in several tries is enough, because a busy machine may delay one rank for longer than a line waits.
folded() {
  local count=$1 wanted=$2 i starter
  shift 2
  for ((i = 0; i < 30; i++)); do
    rm -f "$scratch"/here.*
    { until [ "$(find "$scratch" -name 'here.*' | wc -l)" = "$count" ]; do sleep 0.02; done && seq "$count" >"$scratch/start"; } &
    starter=$!
    try "$@"
    kill "$starter" 2>/dev/null
    wait "$starter"
    expect "exit code" "$code" 0
    [ "${out//$'\r'/}" != "$wanted" ] || return 0
  done
  fail "the output was never folded into '$wanted'"
}

folded 12 "[0-11] same
[0-11] end" timeout 60 horo run -np 12 --fold on sh -c "$together"'echo same; echo end'
folded 3 "[0,2] same
[1] other" timeout 60 horo run -np 3 --fold on sh -c "$together"'if [ $RANK = 1 ]; then echo other; else echo same; fi'

# Ranks that come late get a line of their own. An unfinished last line is shown when the job ends.
folded 3 "[0-1] word
[0] half
[1] half
[2] word
[2] half" timeout 60 horo run -np 3 --fold on sh -c "$together"'[ $RANK != 2 ] || sleep 1; echo word; printf half'

# Output to a file is not folded, and neither is a terminal with few ranks.
try timeout 60 horo run -np 12 --output-filename "$scratch/logs" --fold on echo same
expect "lines in files" "$(cat "$scratch"/logs/rank.*/stdout | grep -c '^same$')" 12
try timeout 60 horo run -np 12 echo same
expect "lines without a terminal" "$(wc -l <<<"$out")" 12
on_terminal() { timeout 60 script -qec "$1" /dev/null </dev/null; }
export TERM=xterm NO_COLOR=1
if command -v script >/dev/null; then
  export command="${together}echo same"
  folded 12 "[0-11] same" on_terminal 'horo run -np 12 sh -c "$command"'
  expect "twelve ranks on a terminal, apart" "$(on_terminal 'horo run -np 12 --fold off echo same' | wc -l)" 12
  expect "eight ranks on a terminal" "$(on_terminal 'horo run -np 8 echo same' | wc -l)" 8
  # The line that replaces a progress bar leaves no trace of the bar.
  expect "a bar" "$(on_terminal "horo run -np 1 --tag rank sh -c 'printf \"0123456789\r\"; echo end'")" \
    $'[0] 0123456789\r\e[K[0] end\r'
else
  echo "not checked: terminals (script is not installed)"
fi

# --ranks selects the ranks on the screen; the files and the report have all of them.
try timeout 60 horo run -np 6 --ranks 0,3-4 --output-filename "$scratch/some" sh -c 'echo "line of $RANK"; [ $RANK != 5 ] || exit 4; sleep 5'
expect "exit code" "$code" 4
expect "screen" "$(sort <<<"$out")" "[0] line of 0
[3] line of 3
[4] line of 4"
expect "file of a rank that is not shown" "$(cat "$scratch/some/rank.5/stdout")" "line of 5"
expect_in "report" "$err" "| line of 5"
refused "'6' in the list of ranks '0,6' is not a rank in 0-5" horo run -np 6 --ranks 0,6 true

# A prompt has no end of line. The prompt of a single rank is shown anyway.
mkfifo "$scratch/answers" "$scratch/questions"
timeout 60 horo run -np 1 --stdin rank0 sh -c 'printf "name? "; read -r name; echo "hello $name"' \
  <"$scratch/answers" >"$scratch/questions" 2>"$scratch/err" &
job=$!
exec 4>"$scratch/answers" 5<"$scratch/questions"
IFS= read -r -n 6 -t 30 question <&5 || fail "no prompt was shown"
expect "question" "$question" "name? "
echo you >&4
IFS= read -r -t 30 answer <&5
expect "answer" "$answer" "hello you"
exec 4>&- 5<&-
wait "$job" || fail "a job that prompts for input ended with $?"

# Standard output and standard error stay separate, also behind a prefix and when folded.
folded 4 "[0-3] o" timeout 60 horo run -np 4 --fold on sh -c "$together"'echo o; echo e >&2'
expect_in "standard error alone" "$err" "] e"
exit 0
