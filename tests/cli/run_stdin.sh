#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No rank gets standard input unless --stdin gives it to rank 0.
# shellcheck disable=SC2016 # The ranks expand it, not this script.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

read_all='echo "$RANK has $(cat | wc -c)"'
printf 'secret' >"$scratch/in"

got() { timeout 30 horo run -np 2 --tag off "$@" sh -c "$read_all" <"$scratch/in" | sort | paste -sd' '; }
expect "input by default" "$(got)" "0 has 0 1 has 0"
expect "input of none" "$(got --stdin none)" "0 has 0 1 has 0"
expect "input of rank 0 from a file" "$(got --stdin rank0)" "0 has 6 1 has 0"

# horo run inside a loop does not consume the loop's standard input.
out=$(printf 'a\nb\n' | while read -r line; do timeout 30 horo run -np 1 echo "$line"; done)
expect "loop" "$out" "a
b"

# More data than any buffer holds reaches a rank that starts reading late.
out=$(head -c 3000000 /dev/zero | timeout 60 horo run -np 2 --tag off --stdin rank0 sh -c "sleep 0.3; $read_all" | sort | paste -sd' ')
expect "input of rank 0 from a pipe" "$out" "0 has 3000000 1 has 0"

# A rank that does not read its standard input ends normally.
head -c 3000000 /dev/zero | timeout 30 horo run -np 1 --stdin rank0 true
expect "exit code" "${PIPESTATUS[1]}" 0
