#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The environment of the ranks.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

export MINE='a b' EMPTY='' HORO_RANK=77 RANK=78 WORLD_SIZE=79 TF_CONFIG=other OLDPWD=/elsewhere
# shellcheck disable=SC2317
shell_function() { :; }
export -f shell_function
try timeout 30 horo run -np 2 --tag off --cycle-time 5ms env
expect "exit code" "$code" 0
for line in 'MINE=a b' EMPTY= HORO_SIZE=2 WORLD_SIZE=2 HOROVOD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
  JAX_NUM_PROCESSES=2 HORO_HOSTNAME=localhost PYTHONUNBUFFERED=1; do
  expect "ranks with $line" "$(grep -cx "$line" <<<"$out")" 2
done
for line in RANK=0 RANK=1 HORO_RANK=0 HOROVOD_RANK=1 LOCAL_RANK=1 JAX_PROCESS_ID=0; do
  expect "ranks with $line" "$(grep -cx "$line" <<<"$out")" 1
done
expect "ranks with the knob" "$(grep -c '^HORO_CYCLE_TIME=' <<<"$out")" 2
expect "ranks with Horovod's name of the knob" "$(grep -c '^HOROVOD_CYCLE_TIME=' <<<"$out")" 2
expect "what is not for ranks" "$(grep -c -e '^OLDPWD=/elsewhere' -e '^BASH_FUNC_' -e '^RANK=78' -e '^TF_CONFIG=other' <<<"$out")" 0
expect "number of addresses of rank 0" "$(grep '^MASTER_PORT=' <<<"$out" | sort -u | wc -l)" 1
case $(tr '\0' '\n' </proc/self/environ) in *HORO_SECRET*) fail "a secret is in the environment" ;; esac

# A launcher that runs inside a rank starts a separate job.
try timeout 30 horo run -np 1 horo run -np 2 --tag off sh -c 'echo "$RANK of $WORLD_SIZE"'
expect "inner job" "$(sort <<<"$out")" "0 of 2
1 of 2"
