#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random faults over four hosts by seed: no job hangs, no process survives, and the report names the process or host that
# failed.
#   faults.sh [--seeds N] [--first SEED]
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
FAULTS_ARGUMENTS=${FAULTS_ARGUMENTS:-$*}
export FAULTS_ARGUMENTS
on_hosts 4
# shellcheck disable=SC2086 # words
exec python3 "$HORO_SOURCE/tests/hosts/faults.py" "$HORO_BIN/horo" ${FAULTS_ARGUMENTS:---seeds 12}
