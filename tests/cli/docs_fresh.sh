#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The generated pages of the manual are what the tables say now.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

for page in knobs cli horo-h horo-hpp; do
  try "$HORO_BIN/horo-docs" "$page"
  expect "exit code" "$code" 0
  cmp -s "$scratch/out" "$HORO_SOURCE/docs/reference/$page.md" ||
    fail "docs/reference/$page.md is stale: horo-docs $page > docs/reference/$page.md"
done

refused "unknown page 'x'; known are knobs, cli, horo-h, horo-hpp" "$HORO_BIN/horo-docs" x
