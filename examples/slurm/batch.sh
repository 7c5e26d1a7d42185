#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbatch batch.sh python3 train.py: starts one rank per task on all nodes of the job. When its time ends or it is
# preempted, the job is queued again and continues from its last checkpoint.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:30:00
#SBATCH --requeue
#SBATCH --open-mode=append
# Slurm signals this script two minutes before the end, so that ranks can save their state and exit.
#SBATCH --signal=B:USR1@120

# In the background, so that the shell passes the signal on at once.
horo run --signal usr1 --grace 20 "$@" &
job=$!
trap 'kill -USR1 $job' USR1
wait $job
code=$?
# The signal has ended the wait, not the job.
if [ $code = 138 ]; then
  wait $job
  code=$?
fi
# 75: the ranks exited because of the signal.
[ $code != 75 ] || scontrol requeue "$SLURM_JOB_ID"
exit $code
