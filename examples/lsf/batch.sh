#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bsub -Q 75 < batch.sh: starts one rank per slot on all hosts of the job, through blaunch. LSF sends SIGUSR2 at the run
# limit, ten minutes before it kills the job. Ranks save their state and exit; the exit code 75 queues the job again.
#BSUB -n 8
#BSUB -R "span[ptile=4]"
#BSUB -W 1:00
#BSUB -o train.%J.out

command=(python3 train.py)
exec horo run --signal usr2 --grace 30 "${command[@]}"
