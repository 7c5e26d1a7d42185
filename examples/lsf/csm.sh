#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bsub csm.sh: where CSM allocates the hosts (Summit and its kin), a rank per GPU; jsrun starts one agent on each host.
#BSUB -nnodes 2
#BSUB -W 1:00
#BSUB -o train.%J.out

command=(python3 train.py)
exec horo run --gpus auto "${command[@]}"
