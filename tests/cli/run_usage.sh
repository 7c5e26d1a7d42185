#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo run refuses wrong usage with exit code 2 and one line that names the fault and the allowed values.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

try horo run --help
expect "exit code" "$code" 0
expect "standard error" "$err" ""
expect_in "help" "$out" "usage: horo run [OPTION...] COMMAND [ARG...]"
expect_in "help" "$out" "--fusion-threshold"
try horo help run
expect_in "help" "$out" "usage: horo run [OPTION...] COMMAND [ARG...]"
try horo run -v
expect "version" "$out" "$(horo --version)"

refused "no command to run is given (see 'horo run --help')" horo run -np 2
refused "the number of ranks is not given; add -np N" horo run true
for np in 0 -1 two 1000000000; do
  refused "--num-proc: '$np' must be a whole number from 1 to" horo run -np "$np" true
done
refused "unknown option '-np2'; write '-np 2'" horo run -np2 true
refused "option '--np' needs a value" horo run -np --verbose true
refused "unknown option '--fusion-treshold'; did you mean '--fusion-threshold'?" horo run --fusion-treshold 1 true
refused "could be --hosts, --hostfile" horo run --host a:1 true
refused "excludes" horo run -np 1 -H a:1 -hostfile f true
refused "ssh.port: '65536' (flag --ssh-port) must be a whole number from 0 to 65535" horo run -np 1 -p 65536 true
refused "shm.ring: '1' (flag --shm-ring) must be a whole number from 2 to 64" horo run -np 1 --shm-ring 1 true
HORO_CYCLE_TIME=soon refused "cycle.time: 'soon' (environment HORO_CYCLE_TIME) must be a time" horo run -np 1 true
HOROVOD_LOG_LEVEL=LOUD refused "log.level: 'LOUD' (environment HOROVOD_LOG_LEVEL) must be one of: trace," \
  horo run -np 1 true

# A mistyped variable is named, and the job runs.
HORO_FUSION_TRESHOLD=1 try horo run -np 1 true
expect "exit code" "$code" 0
expect "standard error" "$err" \
  "horo: run: warning: the variable HORO_FUSION_TRESHOLD has no effect; did you mean HORO_FUSION_THRESHOLD?"

# --check-build, horovodrun's flag, prints the table of horo check-build. The import of frameworks is tested there.
mkdir "$scratch/bin"
printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/python3"
chmod +x "$scratch/bin/python3"
PATH="$scratch/bin:$PATH" try horo run -cb
expect "exit code" "$code" 0
expect_in "table" "$out" "[ ] PyTorch      its import fails without a message"
expect_in "table" "$out" "] shm "
