#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A reader of the screen that is slow, or gone: nothing is lost, the job goes on, memory is bounded.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

lines=200000
write='i=0; while [ $i -lt '$lines' ]; do echo "line $i ----------------------------------------------------------"; i=$((i + 1)); done'

# Paused for a while, then read to the end.
mkfifo "$scratch/pipe"
timeout 100 horo run -np 1 --json-report "$scratch/report" bash -c "$write; echo last" >"$scratch/pipe" 2>"$scratch/err" &
launcher=$!
exec 3<"$scratch/pipe"
read -r first <&3
expect "first line" "${first%% -*}" "line 0"
launcher_pid=$(pgrep -P "$launcher" -x horo-run)
# Until everything on the way is full: the launcher reads no more.
before=
for ((i = 0, still = 0; i < 600 && still < 5; i++)); do
  now=$(awk '/^rchar/ {print $2}' "/proc/$launcher_pid/io")
  if [ "$now" = "$before" ]; then still=$((still + 1)); else still=0; fi
  before=$now
  sleep 0.05
done
[ "$still" -eq 5 ] || fail "the launcher reads on while nobody reads from it"
memory=$(awk '/^VmRSS/ {print $2}' "/proc/$launcher_pid/status")
if ! grep -q libasan "/proc/$launcher_pid/maps"; then
  [ "$memory" -lt 20000 ] || fail "the launcher holds $memory kB while its reader sleeps"
fi
wc -l <&3 >"$scratch/count"
exec 3<&-
wait "$launcher"
expect "exit code" $? 0
expect "rest of the lines" "$(cat "$scratch/count")" "$lines"

# The flags of the inherited pipe are not touched.
timeout 30 bash -c 'horo run -np 2 echo hi; grep flags /proc/self/fdinfo/1 >&2' 2>"$scratch/flags" | cat >/dev/null
expect "O_NONBLOCK in flags" "$((0$(awk '{print $2}' "$scratch/flags") & 04000))" 0

# Streams that are closed from the start are nobody's.
try timeout 30 bash -c 'exec horo run -np 2 sh -c "echo lost; echo lost >&2; exit 4" <&- >&- 2>&-'
expect "exit code" "$code" 4
