#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that the launcher runs before the ranks start, and all that these have started, end with it when it is killed. When the
# process between them is killed, they end too, and the launcher's error says what happened.
# shellcheck disable=SC2016 # The programs expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# A program that never ends, with children that leave its process group or ignore signals. It lists them all in $scratch/family.
mkdir "$scratch/bin"
cat >"$scratch/bin/program" <<END
#!/bin/bash
sleep 98765 &
family="\$\$ \$!"
setsid sleep 98765 &
family+=" \$!"
(trap '' HUP TERM INT; exec sleep 98765) &
echo "\$family \$!" >"$scratch/family.new"
mv "$scratch/family.new" "$scratch/family"
wait
END
chmod +x "$scratch/bin/program"
for name in ssh mpirun; do ln -s program "$scratch/bin/$name"; done
mkdir "$scratch/home"

# start COMMAND...: runs COMMAND until the program that it has started is there. Sets $job, $family (its processes) and $keeper.
start() {
  rm -f "$scratch/family"
  PATH="$scratch/bin:$PATH" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  until [ -e "$scratch/family" ]; do
    [ -e "/proc/$job" ] || fail "$* ended early: $(<"$scratch/err")"
    sleep 0.02
  done
  read -ra family <"$scratch/family"
  keeper=$(sed -n 's/^PPid:\t//p' "/proc/${family[0]}/status")
}

# gone WHEN PID...: waits until the processes have ended; those that nobody reaps have.
gone() {
  local when=$1 pid state
  shift
  for pid in "$@"; do
    for ((i = 0; i < 1000; i++)); do
      state=$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
      case $state in '' | Z | X) continue 2 ;; esac
      sleep 0.02
    done
    kill -KILL "$@" 2>/dev/null
    fail "process $pid ($(tr '\0' ' ' <"/proc/$pid/cmdline")) is left $when"
  done
}

# survives_nothing WHAT COMMAND...: kills the launcher, and then another one's keeper, while COMMAND waits for the program WHAT.
survives_nothing() {
  local what=$1
  shift
  start "$@"
  expect "name of the parent of $what" "$(<"/proc/$keeper/comm")" job-keep
  expect "command line of the parent of $what" "$(tr -d '\0' <"/proc/$keeper/cmdline")" job-keep
  kill -KILL "$job"
  wait "$job" 2>/dev/null
  gone "after a launcher that waited for $what was killed" "${family[@]}" "$keeper"

  start "$@"
  kill -KILL "$keeper"
  # A process in a session of its own is out of reach of the launcher then.
  gone "after the keeper of $what was killed" "${family[0]}" "${family[1]}" "${family[3]}" "$keeper"
  kill -KILL "${family[2]}"
  wait "$job" && fail "a launcher without an answer of $what ended with 0"
  expect_in "error after the keeper of $what was killed" "$(<"$scratch/err")" "the process that keeps it (job-keep) was killed"
}

survives_nothing "a discovery script" horo run -np 2 --host-discovery-script "$scratch/bin/program" true
survives_nothing "a discovery script of horo discover" horo discover --host-discovery-script "$scratch/bin/program"
survives_nothing "ssh -G" horo run -np 2 -H host-a:1,host-b:1 true
survives_nothing "mpirun --version" horo run -np 2 --mpi true
survives_nothing "a program that connects to a host" horo run -np 1 -H host-a:1 --rsh-agent "$scratch/bin/program" true

# child_named NAME PID: the number of PID's child of that name; empty: there is none.
child_named() {
  local child
  cat /proc/"$2"/task/*/children 2>/dev/null | tr ' ' '\n' | while read -r child; do
    [ "$(cat "/proc/$child/comm" 2>/dev/null)" != "$1" ] || echo "$child"
  done
}

# The processes of a host: when one of them is killed, the error names it, and nothing is left. A sweeper is replaced; a user need
# not know that, so only --verbose says it.
for victim in launcher guard sweeper agent; do
  verbose=--no-verbose
  [ $victim != sweeper ] || verbose=--verbose
  start horo run -np 1 "$verbose" "$scratch/bin/program"
  guard=$(child_named job-guard "$job")
  sweeper=$(child_named job-sweep "$guard")
  agent=$(child_named horo-agent "$guard")
  case $victim in
    launcher) killed=$job ;;
    *) killed=${!victim} ;;
  esac
  kill -KILL "$killed"
  if [ $victim = sweeper ]; then
    until new=$(child_named job-sweep "$guard") && [ -n "$new" ] && [ "$new" != "$sweeper" ]; do sleep 0.02; done
    until grep -qxF "horo: host localhost: the process job-sweep was killed; another one has taken its place" "$scratch/err"; do
      sleep 0.02
    done
    kill -KILL "$guard"
    gone "after the second sweeper's guard was killed" "$new"
  fi
  wait "$job" 2>/dev/null
  code=$?
  gone "after the $victim was killed" "${family[@]}" "$guard" "$sweeper" "$agent"
  case $victim in
    launcher) expect "exit code" "$code" 137 ;;
    agent) expect_in "error after the agent was killed" "$(<"$scratch/err")" "was lost: it was killed by signal 9" ;;
    *) expect_in "error after the guard was killed" "$(<"$scratch/err")" "the guard of the agent on host 'localhost' was killed" ;;
  esac
done

# The same while the ranks are being ended, in their grace time: they have got SIGTERM and ignore it. "named" are all processes with
# horo in their names, as pkill -9 horo kills them.
cat >"$scratch/bin/stubborn" <<END
#!/bin/bash
trap '' TERM
sleep 98765 &
family="\$\$ \$!"
setsid sleep 98765 &
family+=" \$!"
trap 'touch "$scratch/asked"' TERM
echo "\$family" >"$scratch/family.new"
mv "$scratch/family.new" "$scratch/family"
while :; do sleep 0.02; done
END
chmod +x "$scratch/bin/stubborn"
for victim in launcher guard sweeper agent named; do
  rm -f "$scratch/asked"
  start horo run -np 1 --grace 600 "$scratch/bin/stubborn"
  guard=$(child_named job-guard "$job")
  sweeper=$(child_named job-sweep "$guard")
  agent=$(child_named horo-agent "$guard")
  kill -TERM "$job"
  until [ -e "$scratch/asked" ]; do sleep 0.02; done
  case $victim in
    launcher) kill -KILL "$job" ;;
    named) kill -KILL "$job" "$agent" ;;
    *) kill -KILL "${!victim}" ;;
  esac
  if [ $victim = sweeper ]; then
    until new=$(child_named job-sweep "$guard") && [ -n "$new" ] && [ "$new" != "$sweeper" ]; do sleep 0.02; done
    [ -e "/proc/${family[0]}" ] || fail "a killed sweeper ended the grace time"
    sleep 0.5 # Time for a line that must not come.
    ! grep -q "job-sweep" "$scratch/err" || fail "the sweeper was replaced with words: $(<"$scratch/err")"
    kill -KILL "$guard"
    gone "after the second sweeper's guard was killed in the grace time" "$new"
  fi
  wait "$job" 2>/dev/null
  code=$?
  gone "after the $victim was killed in the grace time" "${family[@]}" "$guard" "$sweeper" "$agent"
  case $victim in
    launcher | named) expect "exit code after the $victim was killed in the grace time" "$code" 137 ;;
    *) expect "exit code after the $victim was killed in the grace time" "$code" 143 ;;
  esac
done

# A wrapper of ssh ends by SIGTERM at once, its ssh has time to tell the other side: the wrapper's children get SIGTERM and the grace
# time, too, whether the launcher is killed or gives the host up.
cat >"$scratch/bin/wrapper" <<END
#!/bin/bash
(
  trap 'while kill -0 \$\$ 2>/dev/null; do :; done; for i in {1..20}; do /bin/true; done; echo told >>"$scratch/told"; exit' TERM
  echo \$BASHPID >>"$scratch/wrapped"
  while :; do sleep 0.02; done
) >/dev/null 2>&1 & # A write to the launcher that is gone would end it.
wait
END
chmod +x "$scratch/bin/wrapper"
for signal in KILL TERM; do
  rm -f "$scratch/told" "$scratch/wrapped"
  horo run -H host-a:1,host-b:1,host-c:1 --rsh-agent "$scratch/bin/wrapper" true >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  until [ "$(grep -c . "$scratch/wrapped" 2>/dev/null)" = 3 ]; do
    [ -e "/proc/$job" ] || fail "the job of three wrappers ended early: $(<"$scratch/err")"
    sleep 0.02
  done
  kill -$signal "$job"
  wait "$job" 2>/dev/null
  # shellcheck disable=SC2046 # One word for each process.
  gone "of wrappers after SIG$signal" $(<"$scratch/wrapped")
  expect "wrapped programs that could pass SIG$signal on" "$(grep -c told "$scratch/told" 2>/dev/null)" 3
done

# A signal that asks the launcher to end has the same result.
start horo run -np 2 --host-discovery-script "$scratch/bin/program" true
kill -TERM "$job"
wait "$job"
expect "exit code after SIGTERM during the search for hosts" $? 143
gone "after SIGTERM during the search for hosts" "${family[@]}" "$keeper"

# A program in the background does not delay the answer, and ends with its script.
printf '#!/bin/sh\nsleep 98765 >/dev/null 2>&1 &\necho $! >%s\necho localhost:1\n' "$scratch/family" >"$scratch/bin/program"
try timeout 60 horo run -np 1 --host-discovery-script "$scratch/bin/program" true
expect "exit code with a script that leaves a program: $err" "$code" 0
gone "after the search for hosts" "$(<"$scratch/family")"

# A script that ends all processes of its group by signals ends itself only.
printf '#!/bin/sh\ntrap "" TERM\nkill -TERM 0\necho localhost:1\n' >"$scratch/bin/program"
try timeout 60 horo run -np 1 --host-discovery-script "$scratch/bin/program" true
expect "exit code with a script that signals its group: $err" "$code" 0

# A script that kills all processes of its group kills itself only. What it has left in another session ends with the search.
cat >"$scratch/bin/program" <<END
#!/bin/bash
setsid sleep 98765 >/dev/null 2>&1 &
until read -ra stat <"/proc/\$!/stat" && [ "\${stat[5]}" = \$! ]; do sleep 0.02; done # It has its session.
echo \$! >"$scratch/family"
kill -KILL 0
END
try timeout 60 horo run -np 1 --host-discovery-script "$scratch/bin/program" true
expect "exit code with a script that kills its group" "$code" 1
expect_in "error with a script that kills its group" "$err" "was killed by signal 9"
gone "after a script killed its group" "$(<"$scratch/family")"

# A program that ends by itself may leave a service in a session of its own, such as the shared connection of ssh: it stays. What it
# leaves in its own process group ends.
cat >"$scratch/bin/serves" <<END
#!/bin/bash
setsid sleep 98766 >/dev/null 2>&1 &
echo \$! >"$scratch/service"
until read -ra stat <"/proc/\$!/stat" && [ "\${stat[5]}" = \$! ]; do sleep 0.02; done # It has its session.
sleep 98766 >/dev/null 2>&1 &
echo \$! >"$scratch/rest"
echo localhost:1
END
chmod +x "$scratch/bin/serves"
try timeout 60 horo run -np 1 --host-discovery-script "$scratch/bin/serves" true
expect "exit code with a script that leaves a service" "$code" 0
gone "in the process group of a script that has ended" "$(<"$scratch/rest")"
kill -KILL "$(<"$scratch/service")" || fail "the service of a script that has ended is gone"
