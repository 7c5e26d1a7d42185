#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The generated pages of the manual match the tables that they are generated from.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

for page in knobs cli horo-h horo-hpp python; do
  try "$HORO_BIN/horo-docs" "$page"
  expect "exit code" "$code" 0
  cmp -s "$scratch/out" "$HORO_SOURCE/docs/reference/$page.md" ||
    fail "docs/reference/$page.md is stale: horo-docs $page > docs/reference/$page.md"
done

while read -r shell file; do
  try "$HORO_BIN/horo-docs" "$shell"
  expect "exit code" "$code" 0
  cmp -s "$scratch/out" "$HORO_SOURCE/completions/$file" ||
    fail "completions/$file is stale: horo-docs $shell > completions/$file"
done <<<"bash horo.bash
zsh _horo
fish horo.fish"

# offers WORD...: the completions that bash offers for this command line, without a terminal.
offers() {
  bash -c '. "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); _horo; echo "${COMPREPLY[*]}"' _ \
    "$HORO_SOURCE/completions/horo.bash" "$@"
}
# offers_horovodrun WORD...: the same for the options of horovodrun.
offers_horovodrun() {
  bash -c '. "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); COMP_LINE="${*:2}"; _horovodrun
    echo "${COMPREPLY[*]}"' _ "$HORO_SOURCE/completions/horo.bash" "$@"
}
expect "options of horovodrun" "$(offers_horovodrun horovodrun --output-f)" --output-filename
expect "words of horovodrun" "$(offers_horovodrun horovodrun -np 2 --tag o)" off
expect "commands" "$(offers horo disc)" discover
expect "options" "$(offers horo run --output-f)" --output-filename
expect "words" "$(offers horo run --tag o)" off

refused "unknown page 'x'; known are knobs, cli, horo-h, horo-hpp, python, bash, zsh, fish" "$HORO_BIN/horo-docs" x
