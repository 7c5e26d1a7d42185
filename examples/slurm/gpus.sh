#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbatch gpus.sh python3 train.py: a rank per GPU, each of which sees its own.
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=8
#SBATCH --time=04:00:00

exec horo run --gpus auto "$@"
