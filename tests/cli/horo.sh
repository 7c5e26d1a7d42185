#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo without a command prints help and its version, and finds its commands.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

try horo --version
expect "exit code" "$code" 0
expect "version" "$out" "$(sed -n 's/^project(horo VERSION \([0-9.]*\).*/\1/p' "$HORO_SOURCE/CMakeLists.txt")"

try horo --help
expect "exit code" "$code" 0
expect "standard error" "$err" ""
expect_in "help" "$out" "usage: horo [OPTION...] COMMAND [ARG...]"
expect_in "help" "$out" "  check-build "
expect_in "help" "$out" "  top "

refused "no command is given (see 'horo --help')" horo
refused "unknown command 'check-biuld'; did you mean 'check-build'?" horo check-biuld
refused "unknown command 'zzz' (see 'horo --help')" horo zzz
refused "unknown option '--versoin'; did you mean '--version'?" horo --versoin

# The help lists only installed commands. The error for a known but missing command names the folder that was searched.
cp "$HORO_BIN/horo" "$scratch/horo"
PATH=/usr/bin:/bin try "$scratch/horo" --help
expect "exit code" "$code" 0
case $out in *Commands:*) fail "the help lists commands that are not installed" ;; esac
PATH=/usr/bin:/bin refused "command 'check-build' is not installed: no horo-check-build in '$scratch'" \
  "$scratch/horo" check-build

# A command in the folder of horo has priority over one on PATH, and its arguments are passed unchanged.
mkdir "$scratch/path"
printf '#!/bin/sh\necho path "$@"\n' >"$scratch/path/horo-hello"
chmod +x "$scratch/path/horo-hello"
PATH="$scratch/path:/usr/bin:/bin" try "$scratch/horo" hello --np "a b" ''
expect "output" "$out" "path --np a b "
printf '#!/bin/sh\necho beside "$#"\nexit 7\n' >"$scratch/horo-hello"
chmod +x "$scratch/horo-hello"
PATH="$scratch/path:/usr/bin:/bin" try "$scratch/horo" hello --np "a b" ''
expect "output" "$out" "beside 3"
expect "exit code" "$code" 7

# horo fails if it cannot write its answer.
horo --help >/dev/full 2>"$scratch/err"
expect "exit code on a full disk" $? 1
