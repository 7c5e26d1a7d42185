#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A command that cannot be started gives one line and a shell's exit code, and no rank starts.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# refused_command CODE MESSAGE COMMAND...: COMMAND fails with CODE and one line that contains MESSAGE.
refused_command() {
  local expected=$1 message=$2
  shift 2
  try timeout 30 "$@"
  expect "exit code of $*" "$code" "$expected"
  expect "standard output of $*" "$out" ""
  expect "number of lines of $*" "$(wc -l <"$scratch/err")" 1
  expect_in "error of $*" "$err" "$message"
}

refused_command 127 "command 'no-such-command' is not found in PATH" horo run -np 4 no-such-command
refused_command 127 "command '$scratch/none' does not exist" horo run -np 4 "$scratch/none"
touch "$scratch/job_script"
refused_command 126 "command '$scratch/job_script' is not executable" horo run -np 4 "$scratch/job_script"
refused_command 126 "command '$scratch' is a directory" horo run -np 4 "$scratch"
refused_command 127 "the command is an empty word" horo run -np 4 ""

cd "$scratch" || exit 1
refused_command 127 "write ./job_script" horo run -np 1 job_script
PATH="$scratch:$PATH" refused_command 126 "command 'job_script' is '$scratch/job_script', which is not executable" horo run -np 1 job_script
touch train.py
refused_command 127 "for the one in this directory write python3 train.py" horo run -np 1 train.py
refused_command 126 "write python3 ./train.py, or try chmod +x" horo run -np 1 ./train.py
chmod +x train.py
refused_command 127 "for the one in this directory write ./train.py" horo run -np 1 train.py

# A missing interpreter shows only at the start. The error is printed once, however many ranks there are.
printf '#!/no/such/interpreter\n' >"$scratch/job_script"
chmod +x "$scratch/job_script"
try timeout 30 horo run -np 4 ./job_script
expect "exit code" "$code" 126
expect "number of complaints" "$(grep -c 'could not be started' <<<"$err")" 1
expect_in "complaint" "$err" "'$scratch/job_script' was found, but its interpreter '/no/such/interpreter' is missing"
chmod -x "$scratch/job_script"
refused_command 126 "command './job_script' is not executable" horo run -np 2 ./job_script

# A command that contains a slash is resolved from the launcher's directory and runs there.
printf '#!/bin/sh\npwd\n' >"$scratch/job_script"
chmod +x "$scratch/job_script"
try timeout 30 horo run -np 1 ./job_script
expect "exit code" "$code" 0
expect "directory" "$out" "$(pwd -P)"
