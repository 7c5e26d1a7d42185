#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbatch gpus.sh python3 train.py: starts one rank per GPU. Each rank sees all GPUs of its node, and the program takes the one of its
# local rank: torch.cuda.set_device(horo.local_rank()). With --gpus auto a rank sees its own GPU only, as cuda:0.
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=8
#SBATCH --time=04:00:00

exec horo run "$@"
