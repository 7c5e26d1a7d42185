#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --timeout ends a job that takes too long.
# shellcheck disable=SC2016 # The script and the rank expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

try timeout 30 horo run -np 2 --timeout 1.5 sleep 20
expect "exit code" "$code" 124
expect_in "report" "$err" "horo: the job was stopped: --timeout 1.50 s passed"
expect_in "report" "$err" "ranks 0 and 1 ended afterwards: killed by signal 15 (SIGTERM)"

try timeout 30 horo run -np 2 --timeout 20 true
expect "exit code" "$code" 0

# The limit also holds while a restart looks for hosts: it ends the job, and the discovery script with it.
export scratch
printf '%s\n' '#!/bin/bash' '[ -e "$scratch/asked" ] || { touch "$scratch/asked"; echo localhost:1; exit; }' \
  'echo $$ >"$scratch/script"' 'exec sleep 1000' >"$scratch/hosts"
chmod +x "$scratch/hosts"
try timeout 100 horo run -np 1 --timeout 3 --max-restarts 1 --discovery-timeout 90 --host-discovery-script "$scratch/hosts" \
  bash -c 'kill -KILL $$'
expect "exit code" "$code" 124
expect_in "report" "$err" "horo: not restarted: --timeout passed while the job waited for its next attempt"
[ -s "$scratch/script" ] || fail "the script was not asked a second time"
[ ! -e "/proc/$(<"$scratch/script")" ] || fail "the script has outlived the job"
