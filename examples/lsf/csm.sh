#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bsub csm.sh: for systems where CSM allocates the hosts, such as Summit. One rank per GPU; jsrun starts an agent per host.
#BSUB -nnodes 2
#BSUB -W 1:00
#BSUB -o train.%J.out

command=(python3 train.py)
exec horo run --gpus auto "${command[@]}"
