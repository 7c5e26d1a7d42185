#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# interactive.sh COMMAND...: runs a command in a new job from the terminal. Ctrl-C ends all ranks.
exec salloc --nodes=2 --ntasks-per-node=2 --time=00:10:00 horo run "$@"
