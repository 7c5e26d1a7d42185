#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Faults by seed: SIGKILL and SIGSTOP at random moments, to a rank, the agent, its guard, both, or the launcher.
# Nothing hangs, nothing survives, and the report names who it was.
#   run_faults.sh [FIRST [COUNT]]     seeds FIRST, FIRST + 1, ...; by hand 500 of them, in the tests few
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

first=${1:-1}
count=${2:-6}
most=6000 # Looks of 5 ms: how long a job may take.
reducing=$HORO_BIN/../tests/stall_rank
faults=(rank_kill rank_kill rank_kill rank_stop agent_kill agent_stop guard_kill guard_stop pair_kill launcher_kill launcher_stop
  stopped_rank_term)

marked() { grep -lsZ "FAULTS_MARK=$mark" /proc/[0-9]*/environ | tr '\0' ' '; }
children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }
is_over() { ! kill -0 "$job" 2>/dev/null; }
# The names of its halves are cut to what the kernel keeps.
named() { [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ]; }

# find WHAT: $target is its process, as soon as it is there; false when the job is over before.
find_target() {
  local i guard agent all pid
  for ((i = 0; i < most; i++)); do
    is_over && return 1
    guard='' agent=''
    for pid in $(children "$job"); do named "$pid" horo-guard && guard=$pid; done
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
          # Before exec it is not yet what it will be.
          [ -n "$rank" ] || target=''
        fi
        ;;
    esac
    [ -n "$target" ] && return 0
    sleep 0.005
  done
  return 1
}

# finish: $code of the job; false when it does not end.
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
    # shellcheck disable=SC2086 # Of a pair it is two.
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
  # The shell has something to say of processes that are killed.
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
  # Ranks that lost a peer have their say before the launcher's report.
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
  # Whoever had ended by itself before the signal came is nobody's fault.
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
