#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbatch batch.sh python3 train.py: a rank per task, on all nodes of the job. The job is queued again when its time ends
# or it is preempted, and then goes on from its last checkpoint.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:30:00
#SBATCH --requeue
#SBATCH --open-mode=append
# To this script, two minutes before the end: ranks save what they need and end.
#SBATCH --signal=B:USR1@120

# In the background, so that the shell passes the notice on at once.
horo run --signal usr1 --grace 20 "$@" &
job=$!
trap 'kill -USR1 $job' USR1
wait $job
code=$?
# The notice has ended the wait, not the job.
if [ $code = 138 ]; then
  wait $job
  code=$?
fi
# 75: the ranks ended because of the notice.
[ $code != 75 ] || scontrol requeue "$SLURM_JOB_ID"
exit $code
