#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --timeout ends a job that takes too long.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

try timeout 30 horo run -np 2 --timeout 1.5 sleep 20
expect "exit code" "$code" 124
expect_in "report" "$err" "horo: the job was stopped: --timeout 1.50 s passed"
expect_in "report" "$err" "ranks 0 and 1 ended afterwards: killed by signal 15 (SIGTERM)"

try timeout 30 horo run -np 2 --timeout 20 true
expect "exit code" "$code" 0
