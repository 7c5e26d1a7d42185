#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs of a real Slurm end: notice before the time limit, scancel, preemption; and the scripts of examples/slurm. The nodes
# are separate hosts.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/hosts/slurm_lib.sh
. "$HORO_SOURCE/tests/hosts/slurm_lib.sh"
on_hosts 2

examples=$HORO_SOURCE/examples/slurm
SLURM_HERE_EXPIRE=10 SLURM_HERE_EXTRA="PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PartitionName=idle Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=20
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF" \
  start_slurm 2
state_of() { scontrol show job "$1" 2>/dev/null | grep -o "$2=[^ ]*" | cut -d= -f2; }

# comes_to KEY [not] VALUE: waits up to half a minute until KEY of $job has this value; prints the job if it does not.
comes_to() {
  local i
  for ((i = 0; i < 600; i++)); do
    case ${*:2} in
      "not "*) [ "$(state_of "$job" "$1")" = "$3" ] || return 0 ;;
      *) [ "$(state_of "$job" "$1")" != "$2" ] || return 0 ;;
    esac
    sleep 0.05
  done
  fail "$1 never came to be ${*:2}: $(scontrol show job "$job" 2>&1)
$(cat "$scratch"/out.* 2>&1)
$(tail -n 60 "$scratch/slurm/slurmctld.log"; for h in 1 2; do tail -n 40 "$scratch/slurm/slurmd.h$h.log"; done)"
}

# A training that saves on request, and continues from its saved state.
cat >"$scratch/train" <<'TRAIN'
#!/bin/bash
trap 'echo "rank $RANK saved"; exit 0' USR1
trap 'echo "rank $RANK ended"; exit 0' TERM
echo "rank $RANK of $WORLD_SIZE runs, time ${SLURM_RESTART_COUNT:-0}"
[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exit 0
while :; do sleep 0.05; done
TRAIN
chmod +x "$scratch/train"
# lines PATTERN JOB: the number of matching lines in its output. Equal lines count once, because a rank may be signalled
# twice.
lines() { grep -s "$1" "$scratch/out.$2" | sort -u | wc -l; }
ranks_say() { lines "rank [0-3] $1" "$2"; }
submit() { sbatch --parsable -o "$scratch/out.$1" "${@:2}"; }

# The time limit: Slurm signals the script up to a minute early; the job is queued again and succeeds.
job=$(submit limit --time=1 --signal=B:USR1@55 "$examples/batch.sh" "$scratch/train") || fail "sbatch"
eventually "four ranks" '[ "$(ranks_say "of 4 runs, time 0" limit)" = 4 ]'
# Slurm checks time limits every half minute.
for ((i = 0; i < 1200 && $(ranks_say saved limit) < 4; i++)); do sleep 0.1; done
for ((i = 0; i < 600 && $(ranks_say "of 4 runs, time 1" limit) < 4; i++)); do sleep 0.1; done
eventually "another run: $(cat "$scratch/out.limit")" '[ "$(ranks_say "of 4 runs, time 1" limit)" = 4 ]'
expect_in "the notice" "$(<"$scratch/out.limit")" "horo: SIGUSR1: notice that the job's time ends"
expect_in "the report" "$(<"$scratch/out.limit")" "exit code 75 asks for the job to be queued again"
comes_to JobState COMPLETED
nothing_ours h1 h2

# The exit code of a script that runs only horo run. Nothing queues that job again.
printf '#!/bin/bash\nexec horo run --signal usr1 "$@"\n' >"$scratch/plain"
job=$(submit plain -N 2 --ntasks-per-node=2 "$scratch/plain" "$scratch/train")
eventually "four ranks" '[ "$(ranks_say "of 4 runs" plain)" = 4 ]'
scancel -b -s USR1 "$job"
comes_to ExitCode 75:0
expect "ranks that saved" "$(ranks_say saved plain)" 4
nothing_ours h1 h2

# scancel sends SIGTERM, and SIGKILL soon after. The ranks get their grace time, and no process stays.
job=$(submit cancelled -N 2 --ntasks-per-node=2 "$scratch/plain" "$scratch/train")
eventually "four ranks" '[ "$(ranks_say "of 4 runs" cancelled)" = 4 ]'
scancel "$job"
comes_to JobState CANCELLED
nothing_ours h1 h2
expect "ranks that ended by themselves" "$(ranks_say ended cancelled)" 4

# Preemption gives the same notice; Slurm queues the job again by itself.
job=$(submit preempted -p idle --requeue --open-mode=append --signal=B:USR1@10 --exclusive -N 2 --ntasks-per-node=2 \
  "$scratch/plain" "$scratch/train")
eventually "four ranks" '[ "$(ranks_say "of 4 runs, time 0" preempted)" = 4 ]'
urgent=$(submit urgent -p urgent --exclusive -N 2 --wrap 'echo urgent')
eventually "four ranks that saved" '[ "$(ranks_say saved preempted)" = 4 ]'
eventually "the urgent job" 'grep -qs urgent "$scratch/out.urgent"'
expect_in "the report" "$(<"$scratch/out.preempted")" "exit code 75 asks for the job to be queued again"
scancel "$job" "$urgent" 2>/dev/null
nothing_ours h1 h2

# SIGTERM to the steps reaches neither the script nor the ranks on its node; all ranks get their grace time.
for notice in off term; do
  if [ "$notice" = off ]; then expected="0:15 143:0"; else expected=75:0; fi
  printf '#!/bin/bash\nexec horo run --signal %s "$@"\n' "$notice" >"$scratch/told"
  job=$(submit "told-$notice" -N 2 --ntasks-per-node=2 "$scratch/told" "$scratch/train")
  eventually "four ranks" '[ "$(ranks_say "of 4 runs" told-$notice)" = 4 ]'
  scancel -s TERM "$job"
  comes_to JobState not RUNNING
  expect_in "the code with --signal $notice" " $expected " " $(state_of "$job" ExitCode) "
  expect "ranks that ended by themselves" "$(ranks_say ended "told-$notice")" 4
  expect_in "the report" "$(<"$scratch/out.told-$notice")" "stopped by signal 15 (SIGTERM) to the agent on h2 after"
  nothing_ours h1 h2
done

# The agent of a host gets the signal too when its ranks have already ended: Slurm may signal it only then.
printf '#!/bin/bash\nexec horo run sh -c '"'"'[ $RANK -lt 2 ] || { echo rank $RANK ends; exit 0; }; exec "$0"'"'"' "$@"\n' >"$scratch/half"
job=$(submit half -N 2 --ntasks-per-node=2 "$scratch/half" "$scratch/train")
eventually "ranks of both hosts" '[ "$(ranks_say ends half):$(ranks_say "of 4 runs" half)" = 2:2 ]'
scancel -s TERM "$job"
comes_to JobState not RUNNING
expect_in "the report" "$(<"$scratch/out.half")" "stopped by signal 15 (SIGTERM) to the agent on h2 after"
expect "ranks that ended by themselves" "$(ranks_say ended half)" 2
nothing_ours h1 h2

# The same for a job that is preempted and has not named a signal.
printf '#!/bin/bash\nexec horo run --signal term "$@"\n' >"$scratch/told"
job=$(submit silent -p idle --requeue --open-mode=append --exclusive -N 2 --ntasks-per-node=2 "$scratch/told" "$scratch/train")
eventually "four ranks" '[ "$(ranks_say "of 4 runs, time 0" silent)" = 4 ]'
urgent=$(submit urgent -p urgent --exclusive -N 2 --wrap 'echo urgent')
eventually "four ranks that ended" '[ "$(ranks_say ended silent)" = 4 ]'
eventually "the report" 'grep -qs "exit code 75 asks for the job to be queued again" "$scratch/out.silent"'
scancel "$job" "$urgent" 2>/dev/null
nothing_ours h1 h2

# The other scripts of examples/slurm.
job=$(submit srun -t 5 "$examples/srun.sh" sh -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS"')
for ((i = 0; i < 300 && $(lines "task [0-3] of 4" srun) < 4; i++)); do sleep 0.1; done
comes_to JobState not RUNNING
[ "$(lines "task [0-3] of 4" srun)" = 4 ] ||
  fail "srun.sh says '$(cat "$scratch/out.srun" 2>&1)'; $(squeue -o '%i %P %j %T %r'; sinfo -N -l)"
expect "how srun.sh ended" "$(state_of "$job" JobState)" COMPLETED
try timeout 100 "$examples/interactive.sh" --tag off hostname
expect "exit code of interactive.sh ($err)" "$code" 0
expect "its hosts" "$(sort <<<"$out" | uniq -c | tr -s ' ')" " 2 h1
 2 h2"
nothing_ours h1 h2

# The variables of a job that has ended.
SLURM_JOB_ID=$job SLURM_JOB_NODELIST="h[1-2]" SLURM_TASKS_PER_NODE='1(x2)' try timeout 60 horo run true
expect "exit code in a job that is over" "$code" 125
expect_in "the report" "$err" "srun to host 'h"
expect_in "the report" "$err" "has expired"
nothing_ours h1 h2
exit 0
