#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The reader of the screen is slow or has gone: nothing is lost, the job continues, and memory stays bounded.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

lines=200000
write='i=0; while [ $i -lt '$lines' ]; do echo "line $i ----------------------------------------------------------"; i=$((i + 1)); done'

# The reader pauses for a while, then reads to the end.
mkfifo "$scratch/pipe"
timeout 100 horo run -np 1 --json-report "$scratch/report" bash -c "$write; echo last" >"$scratch/pipe" 2>"$scratch/err" &
launcher=$!
exec 3<"$scratch/pipe"
read -r first <&3
expect "first line" "${first%% -*}" "line 0"
launcher_pid=$(pgrep -P "$launcher" -x horo-run)
# Wait until all buffers are full and the launcher stops reading.
before=
for ((i = 0, still = 0; i < 600 && still < 5; i++)); do
  now=$(awk '/^rchar/ {print $2}' "/proc/$launcher_pid/io")
  if [ "$now" = "$before" ]; then still=$((still + 1)); else still=0; fi
  before=$now
  sleep 0.05
done
[ "$still" -eq 5 ] || fail "the launcher goes on reading although its own reader has stopped"
memory=$(awk '/^VmRSS/ {print $2}' "/proc/$launcher_pid/status")
if ! grep -q libasan "/proc/$launcher_pid/maps"; then
  [ "$memory" -lt 20000 ] || fail "the launcher holds $memory kB while its reader sleeps"
fi
wc -l <&3 >"$scratch/count"
exec 3<&-
wait "$launcher"
expect "exit code" $? 0
expect "rest of the lines" "$(cat "$scratch/count")" "$lines"

# The flags of the inherited pipe stay unchanged.
timeout 30 bash -c 'horo run -np 2 echo hi; grep flags /proc/self/fdinfo/1 >&2' 2>"$scratch/flags" | cat >/dev/null
expect "O_NONBLOCK in flags" "$((0$(awk '{print $2}' "$scratch/flags") & 04000))" 0

# Streams that were closed at the start stay closed.
try timeout 30 bash -c 'exec horo run -np 2 sh -c "echo lost; echo lost >&2; exit 4" <&- >&- 2>&-'
expect "exit code" "$code" 4
