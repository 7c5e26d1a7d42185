#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What elastic jobs refuse before anything starts.
# shellcheck source=tests/cli/lib.sh
. "$HORO_SOURCE/tests/cli/lib.sh"

refused "--min-np 3 is more than -np 2" horo run -np 2 --min-np 3 true
refused "--max-np 1 is less than the 2 ranks" horo run -np 2 --max-np 1 true
refused "--min-np 4 is more than -np 2" horo run -np 2 --min-np 4 --max-np 3 true
refused "--min-np 0 (flag --min-np) does not make the job elastic" horo run -np 2 --min-np 0 true
HORO_MIN_NP=0 refused "--min-np 0 (environment HORO_MIN_NP) does not" horo run -np 2 true
refused "--max-np 0 (flag --max-np) does not make the job elastic" horo run -np 2 --max-np 0 true
refused "cannot have --mpi" horo run -np 2 --min-np 1 --mpi true
refused "cannot have --stdin rank0" horo run -np 2 --min-np 1 --stdin rank0 true
refused "MIN,MAX" horo run -np 2 --min-np 1 --blacklist-cooldown-range 100 10 true
refused "MIN,MAX" horo run -np 2 --min-np 1 --blacklist-cooldown-range 0 10 true

# The first run of the script decides: a failure ends the job, and garbage is refused with its line.
refused "discovery script '$scratch/none.sh': it, or the interpreter that its first line names, is missing" \
  horo run -np 2 --min-np 1 --host-discovery-script "$scratch/none.sh" true
: >"$scratch/plain.sh"
refused "discovery script '$scratch/plain.sh': it, or the interpreter that its first line names, may not be executed" \
  horo run -np 2 --min-np 1 --host-discovery-script "$scratch/plain.sh" true
try horo run -np 2 --min-np 1 --host-discovery-script "exit 4 | false; exit 4" true
[ "$code" -ne 0 ] || fail "a script that failed at first was accepted"
expect_in "error" "$err" "it ended with exit code"
try horo run -np 2 --min-np 1 --host-discovery-script "echo a:2; echo b:x" true
expect_in "error" "$err" "line 2: slots in 'b:x'"

# Output without end, or nearly so: neither time nor memory grows with it, and nothing starts.
try horo run -np 2 --min-np 1 --host-discovery-script "yes localhost | head -1000000" true
expect "exit code of a host on 10^6 lines" "$code" 2
expect_in "error" "$err" "host 'localhost' is on 1000000 lines, which give it 1000000 slots"
try horo run -np 2 --min-np 1 --host-discovery-script "yes localhost | head -1000" true
expect "exit code of a host on more lines than cores" "$code" 2
expect_in "error" "$err" "limit the job with --max-np"
try horo run -np 2 --min-np 1 --host-discovery-script "yes localhost" true
expect_in "error" "$err" "it printed more than"
try horo run -np 2 --min-np 1 --host-discovery-script "seq -f h%.0f 1000000 | cat" true
expect_in "error" "$err" "line 100001: with"
try horo run -np 2 --min-np 1 --discovery-timeout 300ms --host-discovery-script "sleep 60; echo a" true
expect_in "error" "$err" "it did not end in time (see --discovery-timeout)"

# Fixed hosts have no room for what is asked for, and never will: nobody waits.
try horo run -np 4 --min-np 4 -H localhost:2 --elastic-timeout 1h true
[ "$code" -ne 0 ] || fail "a job without enough fixed slots succeeded"
expect_in "error" "$err" "--min-np asks for 4 ranks, and the hosts, which do not change, have no room for them: 2 slots are offered"
try horo run -np 4 --min-np 2 -H localhost:2 --elastic-timeout 1h true
expect "exit code of a job with fewer fixed slots than -np" "$code" 0

# All hosts are put aside: the job ends with the program's code, and says why for each host.
try horo run -np 2 --min-np 1 -H localhost:2 --slot-restarts 0 --elastic-timeout 1h sh -c 'exit 5'
expect "exit code of a job whose hosts are all put aside" "$code" 5
expect_in "error" "$err" "no host is left that could be used: host localhost"
