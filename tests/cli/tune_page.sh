#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The page of horo tune --html works in a browser: it draws the curve and the surface, fills its table, and reports no error.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

browser=$(command -v chromium || command -v chromium-browser) || { echo "no chromium (Debian: chromium)"; exit 77; }

# page FILE: prints the page after its script has run; the browser's console is in $scratch/console.
page() {
  timeout 100 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$scratch/profile" \
    --virtual-time-budget=3000 --enable-logging=stderr --dump-dom "file://$1" >"$scratch/dom" 2>"$scratch/console" </dev/null
  expect "exit code of the browser" "$?" 0
  if grep -E 'CONSOLE.*(Error|Uncaught)' "$scratch/console"; then fail "the page's script has failed"; fi
}

try horo tune --log "$HORO_SOURCE/tests/data/horovod-autotune.csv" --html "$scratch/report.html"
expect "exit code" "$code" 0
if grep -E '(src|href)="|https?://[^w]' "$scratch/report.html"; then fail "the page loads something"; fi
sed 's|</body>|<script>\
const count = text => document.querySelectorAll(text).length, cells = () => [...by("settings").rows].slice(1).map(row => row.cells[1].textContent);\
const before = cells().join(), head = by("settings").rows[0].cells[1]; head.onclick(); const sorted = cells(), up = sorted.every((v, i) => i === 0 \|\| +sorted[i - 1] <= +v);\
by("surface").querySelector("circle").dispatchEvent(new PointerEvent("pointerenter")); const told = by("tip").textContent.includes("MB/s");\
document.title = JSON.stringify({ dots: count("#curve circle"), cells: count("#surface rect"), points: count("#surface circle") === data.settings.length,\
  rows: by("settings").rows.length === data.settings.length + 1, changed: before !== sorted.join(), up, told, verdicts: count("#verdicts li") === data.verdicts.length + data.notes.length + (data.keep_command ? 1 : 0) });\
</script></body>|' "$scratch/report.html" >"$scratch/checked.html"
page "$scratch/checked.html"
expect "what the page can do" "$(grep -o '<title>{[^<]*' "$scratch/dom")" \
  '<title>{"dots":44,"cells":1536,"points":true,"rows":true,"changed":true,"up":true,"told":true,"verdicts":true}'

# Few samples: there is no surface, and the page still works.
head -3 "$HORO_SOURCE/tests/data/horovod-autotune.csv" >"$scratch/few.csv"
try horo tune --log "$scratch/few.csv" --html "$scratch/few.html"
expect "exit code" "$code" 0
page "$scratch/few.html"
expect_in "the part of the surface" "$(grep -o '<section id="surface-part"[^>]*' "$scratch/dom")" "hidden"
head -1 "$HORO_SOURCE/tests/data/horovod-autotune.csv" >"$scratch/none.csv"
try horo tune --log "$scratch/none.csv" --html "$scratch/none.html"
expect "exit code" "$code" 0
page "$scratch/none.html"
expect_in "the verdict without samples" "$(cat "$scratch/dom")" "<li>the log has no sample"
