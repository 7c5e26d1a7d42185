#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# interactive.sh COMMAND...: in a job of its own, from the terminal. Ctrl-C ends all ranks.
exec salloc --nodes=2 --ntasks-per-node=2 --time=00:10:00 horo run "$@"
