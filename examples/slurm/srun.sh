#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbatch srun.sh ./train: srun starts the ranks itself, and libhoro finds the other ranks through PMI. Without `horo run`
# there is no report that names the first failed rank.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:30:00

exec srun --mpi=pmi2 --kill-on-bad-exit=1 "$@"
