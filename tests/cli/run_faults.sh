#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random faults from a seed: SIGKILL or SIGSTOP at a random moment to a rank, the agent, its guard, both, or the launcher.
# Nothing hangs, no process survives, and the report names the process that failed.
#   run_faults.sh [FIRST [COUNT]]     runs the seeds FIRST, FIRST + 1, ...; a few in the tests, 500 by hand
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

first=${1:-1}
count=${2:-6}
most=6000 # Longest duration of a job, in polls of 5 ms.
reducing=$HORO_BIN/../tests/stall_rank
faults=(rank_kill rank_kill rank_kill rank_stop agent_kill agent_stop guard_kill guard_stop pair_kill launcher_kill launcher_stop
  stopped_rank_term)

marked() { grep -lsZ "FAULTS_MARK=$mark" /proc/[0-9]*/environ | tr '\0' ' '; }
children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }
is_over() { ! kill -0 "$job" 2>/dev/null; }
# The kernel truncates the names of the agent and its guard.
named() { [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ]; }

# find WHAT: sets $target to the process as soon as it exists; fails if the job ends first.
find_target() {
  local i guard agent all pid
  for ((i = 0; i < most; i++)); do
    is_over && return 1
    guard='' agent=''
    for pid in $(children "$job"); do named "$pid" job-guard && guard=$pid; done
    for pid in ${guard:+$(children "$guard")}; do named "$pid" horo-agent && agent=$pid; done
    case $1 in
      launcher) target=$job ;;
      guard) target=$guard ;;
      agent) target=$agent ;;
      pair) target=${agent:+$guard $agent} ;;
      rank)
        read -ra all <<<"${agent:+$(children "$agent")}"
        target=''
        if ((${#all[@]} > 0)); then
          target=${all[RANDOM % ${#all[@]}]}
          rank=$(tr '\0' '\n' <"/proc/$target/environ" 2>/dev/null | sed -n 's/^HORO_RANK=//p')
          # Before exec the process still has the wrong name.
          [ -n "$rank" ] || target=''
        fi
        ;;
    esac
    [ -n "$target" ] && return 0
    sleep 0.005
  done
  return 1
}

# finish: sets $code to the job's exit code; fails if the job does not end.
finish() {
  local i
  for ((i = 0; i < most; i++)); do
    if is_over; then
      wait "$job"
      code=$?
      return 0
    fi
    sleep 0.005
  done
  return 1
}

hung=0 survived=0 wrong=0 late=0
for ((seed = first; seed < first + count; seed++)); do
  RANDOM=$seed
  fault=${faults[RANDOM % ${#faults[@]}]}
  ranks=$((RANDOM % 5 + 2))
  delay=$(printf '0.%03d' $((RANDOM % 400)))
  mark=$$-$seed
  if ((RANDOM % 2)); then
    ranked=("$reducing" steps=400)
  else
    ranked=(sh -c 'i=0; while [ $i -lt 40 ]; do echo "line $i"; sleep 0.01; i=$((i + 1)); done')
  fi
  FAULTS_MARK=$mark horo run -np "$ranks" --grace 1 --failure-grace 1 "${ranked[@]}" \
    >"$scratch/out" 2>"$scratch/err" </dev/null &
  job=$!
  sleep "$delay"
  rank=''
  what=${fault%_*}
  hit=no
  if find_target "${what/stopped_/}" 2>/dev/null; then
    hit=yes
    # shellcheck disable=SC2086 # "both" is two process ids.
    case $fault in
      *_kill) kill -KILL $target 2>/dev/null || hit=no ;;
      stopped_rank_term)
        kill -STOP "$target" 2>/dev/null
        kill -TERM "$job" 2>/dev/null || hit=no
        ;;
      *_stop)
        kill -STOP "$target" 2>/dev/null || hit=no
        sleep "0.$((RANDOM % 3 + 1))"
        kill -CONT "$target" 2>/dev/null
        ;;
    esac
  fi
  report="seed $seed: $fault of $target${rank:+ (rank $rank)} among $ranks after $delay s"
  # The shell reports processes that are killed.
  if ! finish 2>/dev/null; then
    hung=$((hung + 1))
    echo "$report: HANGS"
    # shellcheck disable=SC2046 # Several processes.
    kill -KILL "$job" $(marked | grep -o '[0-9]*')
    wait "$job"
    continue
  fi
  for ((i = 0; i < 1000; i++)); do
    [ -z "$(marked)" ] && break
    sleep 0.01
  done
  if [ -n "$(marked)" ]; then
    survived=$((survived + 1))
    echo "$report: SURVIVORS $(marked)"
  fi
  # Ranks that lost a peer write before the launcher's report.
  err=$(sed -n 's/^horo: //p' "$scratch/err" | head -n 1)
  case $fault in
    rank_kill) expected="137 rank $rank on *failed*killed by signal 9" ;;
    agent_kill) expected="125 *agent*" ;;
    guard_kill) expected="125 *guard*" ;;
    pair_kill) expected="125 *" ;;
    launcher_kill) expected="137 " ;;
    stopped_rank_term) expected="143 *stopped by signal 15*" ;;
    *_stop) expected="0 " ;;
  esac
  # A process may have ended by itself before the signal came. That is not a failure.
  if [ "$code" = 0 ] && [ "${expected%% *}" != 0 ]; then
    late=$((late + 1))
  elif [ $hit = no ] && [ "$code" = 0 ]; then
    late=$((late + 1))
  else
    # shellcheck disable=SC2053,SC2295 # A pattern.
    if [ "$code" != "${expected%% *}" ] || [[ $err != ${expected#* }* ]]; then
      wrong=$((wrong + 1))
      echo "$report: exit code $code, expected $expected: $(<"$scratch/err")"
    fi
  fi
done
echo "seeds $first to $((first + count - 1)): $hung hung, $survived with survivors, $wrong with a wrong report, $late too late"
((hung == 0 && survived == 0 && 100 * wrong <= count)) || exit 1
