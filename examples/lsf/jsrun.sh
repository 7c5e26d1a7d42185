#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bsub jsrun.sh: jsrun starts the ranks itself, for programs that call MPI. Each rank is bound to its part of the cores.
#BSUB -nnodes 2
#BSUB -W 1:00
#BSUB -o train.%J.out

command=(./simulation)
exec horo run --jsrun "${command[@]}"
