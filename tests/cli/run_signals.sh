#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Signals to the launcher: it stops the ranks with a grace time, stops them at once, or passes the signal on.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# await WORD: waits until both ranks have written WORD.
await() {
  for ((i = 0; i < 300; i++)); do
    [ "$(grep -c "$1" "$scratch/out")" -ge 2 ] && return
    sleep 0.1
  done
  fail "the ranks never said '$1': $(cat "$scratch/out" "$scratch/err")"
}

# begin COMMAND...: starts COMMAND in the background and waits until both ranks are ready.
begin() {
  : >"$scratch/out"
  setsid timeout 60 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null &
  waiter=$!
  await ready
  launcher=$(pgrep -P "$waiter" -x horo-run)
  [ -n "$launcher" ] || fail "the launcher does not run"
}

# end: waits for the command that `begin` started, and sets $code, $out and $err.
end() {
  wait "$waiter"
  code=$?
  out=$(cat "$scratch/out")
  err=$(cat "$scratch/err")
}

for signal in INT TERM HUP; do
  begin horo run -np 2 bash -c 'trap "echo stopped; exit 0" TERM; echo ready; sleep 30 & wait'
  kill -"$signal" "$launcher"
  end
  expect "exit code after SIG$signal" "$code" $((128 + $(kill -l "$signal")))
  expect "ranks that had time to end" "$(grep -c stopped <<<"$out")" 2
  expect_in "report" "$err" "horo: stopped by signal $(kill -l "$signal") (SIG$signal)"
done

# A batch system signals every process of the job. The agents do not react to the warning themselves.
begin horo run -np 2 bash -c 'trap "echo warned" USR1; trap "exit 0" USR2; echo ready; while :; do sleep 0.05; done'
for signal in USR1 USR2; do
  pkill -"$signal" -x 'horo-.*' -s "$(ps -o sid= -p "$launcher" | tr -d ' ')"
  [ $signal = USR2 ] || await warned
done
end
expect "exit code after signals to all" "$code" 0

# After a batch system's SIGTERM to every process of the job, the ranks still get their grace time.
begin horo run -np 2 bash -c 'trap "sleep 0.3; echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
pkill -TERM -s "$(ps -o sid= -p "$launcher" | tr -d ' ')"
end
expect "exit code after SIGTERM to all" "$code" 143
expect "ranks that had time to end" "$(grep -c saved <<<"$out")" 2

# Ranks are killed after the grace time, or at the second signal.
begin horo run -np 2 --grace 0.3 bash -c 'trap "" TERM; echo ready; while :; do sleep 1; done'
kill -TERM "$launcher"
end
expect "exit code" "$code" 143
expect_in "report" "$err" "killed by signal 9 (SIGKILL)"

begin horo run -np 2 --grace 50 bash -c 'trap "echo asked" TERM; echo ready; while :; do sleep 0.1; done'
kill -INT "$launcher"
await asked
sleep 0.4 # An earlier signal would count as the same one, passed on by a wrapper.
kill -INT "$launcher"
end
expect "exit code" "$code" 130

# If a shell signals the process group of a wrapper that passes the signal on, the signal arrives twice and counts once.
set -m
: >"$scratch/out"
timeout --foreground 60 horo run -np 2 bash -c 'trap "echo stopped; exit 0" TERM; echo ready; sleep 30 & wait' \
  >"$scratch/out" 2>"$scratch/err" </dev/null &
waiter=$!
set +m
await ready
kill -TERM -- "-$waiter"
end
expect "exit code of a wrapped job" "$code" 143
expect "ranks of a wrapped job that had time to end" "$(grep -c stopped <<<"$out")" 2

# SIGUSR1 and SIGUSR2 reach every rank, and the job continues.
begin horo run -np 2 bash -c 'trap "echo one" USR1; trap "echo two; exit 0" USR2; echo ready; while :; do sleep 0.1; done'
kill -USR1 "$launcher"
await one
kill -USR2 "$launcher"
end
expect "exit code" "$code" 0
expect "ranks with SIGUSR1" "$(grep -c one <<<"$out")" 2
expect "ranks with SIGUSR2" "$(grep -c two <<<"$out")" 2

# A signal while a discovery script runs ends the script and what it has started, and then the program that asked for hosts.
printf '%s\n' '#!/bin/bash' "sleep 1000 & echo \"\$\$ \$!\" >'$scratch/script'; wait" >"$scratch/hosts"
chmod +x "$scratch/hosts"

# is_alive PID: whether it is a process that has not ended.
is_alive() { grep -q '^State:[[:space:]]*[^Z]' "/proc/$1/status" 2>/dev/null; }

# signal_search SIGNALS COMMAND...: signals COMMAND while its discovery script runs, and waits for it.
signal_search() {
  local signal=$1 script child
  shift
  rm -f "$scratch/script"
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null &
  waiter=$!
  until [ -s "$scratch/script" ]; do sleep 0.02; done
  for signal in $signal; do kill -"$signal" "$waiter" 2>/dev/null; done
  end
  read -r script child <"$scratch/script"
  for ((i = 0; i < 100; i++)); do
    is_alive "$script" || is_alive "$child" || break
    sleep 0.02 # They were killed and may not be gone yet.
  done
  ! is_alive "$script" || fail "the script has outlived $1"
  ! is_alive "$child" || fail "a child of the script has outlived $1"
}

for signal in INT TERM HUP USR1; do
  signal_search $signal horo-run --host-discovery-script "$scratch/hosts" --discovery-timeout 100 true
  number=$(kill -l $signal)
  expect "exit code after SIG$signal during the search for hosts" "$code" $((128 + number))
  expect "report" "$err" "horo: run: error: stopped by signal $number (SIG$signal) before the job started"
done
signal_search USR2 horo-run --signal usr2 --host-discovery-script "$scratch/hosts" --discovery-timeout 100 true
expect "exit code after the notice during the search for hosts" "$code" 75
# A second signal does not end it before the script is killed. The exit code may be that of either signal.
signal_search "INT TERM" horo-run --host-discovery-script "$scratch/hosts" --discovery-timeout 100 true
signal_search INT horo-discover --host-discovery-script "$scratch/hosts"
expect "exit code of horo discover" "$code" 130

# If SIGHUP is ignored at the start, as under nohup, it stays ignored.
begin env --ignore-signal=HUP horo run -np 2 bash -c 'echo ready; sleep 2; echo end'
kill -HUP "$launcher"
end
expect "exit code with SIGHUP ignored" "$code" 0

# A batch system's signal announces the end of the job's time: ranks that end because of it are not failures.
begin horo run -np 2 --signal usr2 --json-report "$scratch/report" \
  bash -c 'trap "echo saved; exit $((HORO_RANK * 75))" USR2; echo ready; while :; do sleep 0.05; done'
kill -USR2 "$launcher"
end
expect "exit code after a notice" "$code" 75
expect "ranks that saved" "$(grep -c saved <<<"$out")" 2
expect_in "standard error" "$err" "horo: SIGUSR2: notice that the job's time ends; the ranks get it"
expect_in "standard error" "$err" "exit code 75 asks for the job to be queued again"
expect_in "the report" "$(<"$scratch/report")" '"queue_again": true'
begin horo run -np 2 --signal USR1 bash -c 'echo ready; exec sleep 30'
kill -USR1 "$launcher"
end
expect "exit code of ranks that know nothing of the notice" "$code" 75
begin horo run -np 2 --signal usr1 bash -c 'trap "sleep 0.2; exit 3" USR1; echo ready; while :; do sleep 0.05; done'
kill -USR1 "$launcher"
end
expect "exit code of a failure after a notice" "$code" 3
begin horo run -np 2 --signal term bash -c 'trap "echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
kill -TERM "$launcher"
end
expect "exit code of SIGTERM as the notice" "$code" 75
expect "ranks that saved" "$(grep -c saved <<<"$out")" 2
begin horo run -np 2 --signal usr1 bash -c 'trap "" USR1; echo ready; exec sleep 30'
kill -USR1 "$launcher"
for ((i = 0; i < 100; i++)); do
  ! grep -q notice "$scratch/err" || break
  sleep 0.05
done
kill -TERM "$launcher"
end
expect "exit code of ranks that had to be stopped after a notice" "$code" 75
HORO_SIGNAL=hup refused "signal: 'hup' (environment HORO_SIGNAL) must be one of: off, usr1, usr2, term" horo run -np 1 true
