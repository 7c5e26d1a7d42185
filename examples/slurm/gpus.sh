#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbatch gpus.sh python3 train.py: starts one rank per GPU; each rank sees its own GPU.
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=8
#SBATCH --time=04:00:00

exec horo run --gpus auto "$@"
