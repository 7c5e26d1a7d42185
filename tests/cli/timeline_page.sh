#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The page of horo timeline-view --html in a browser: it fills its tables, draws, and reports no error.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

browser=$(command -v chromium || command -v chromium-browser) || { echo "no chromium (Debian: chromium)"; exit 77; }

# page ADDRESS: what the page is after its script ran; what it says on the console is in $scratch/console.
page() {
  timeout 100 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$scratch/profile" \
    --virtual-time-budget=3000 --enable-logging=stderr --dump-dom "$1" >"$scratch/dom" 2>"$scratch/console" </dev/null
  code=$?
  expect "exit code of the browser" "$code" 0
  if grep -E 'CONSOLE.*(Error|Uncaught)' "$scratch/console"; then fail "the page's script has failed"; fi
}

try horo timeline-view --html "$scratch/report.html" "$HORO_SOURCE/tests/data/horovod-straggler.json.gz"
expect "exit code" "$code" 0
# A check at the page's end, where all that the page has can be reached.
sed 's|</body>|<script>\
const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data, colors = new Set();\
for (let i = 0; i < pixels.length; i += 4) colors.add(pixels[i] << 16 \| pixels[i + 1] << 8 \| pixels[i + 2]);\
const search = text => { by("search").value = text; by("search").dispatchEvent(new Event("input")); return matches.length; };\
const inside = lanes.buckets.flatMap(names => names.slice(1)).find(name => !operations.some(o => o[4] === name));\
const fused = inside === undefined \|\| search(lanes.texts[inside]) > 0;\
const found = search("layer3"); step(1); const zoomed = to - from < last / 2;\
document.dispatchEvent(new KeyboardEvent("keydown", { key: "0" })); const whole = to - from >= last;\
const paper = color("--paper"); by("theme").click(); const turned = color("--paper") !== paper;\
document.title = ["colors", colors.size > 5, "found", found > 0, "zoomed", zoomed, "whole", whole, "turned", turned, "fused", fused, inside !== undefined].join(" ");\
</script></body>|' "$scratch/report.html" >"$scratch/checked.html"
page "file://$scratch/checked.html"
expect_in "what the page can do" "$(grep -o '<title>.*</title>' "$scratch/dom")" \
  "colors true found true zoomed true whole true turned true fused true true"
expect_in "summary" "$(grep -o '<span id="summary">[^<]*' "$scratch/dom")" "operations of"
[ "$(grep -o '<svg viewBox' "$scratch/dom" | wc -l)" = 3 ] || fail "not three plots"
[ "$(grep -o '<circle\|<rect' "$scratch/dom" | wc -l)" -gt 10 ] || fail "the plots are empty"
[ "$(grep -o '<tr' "$scratch/dom" | wc -l)" -gt 15 ] || fail "the tables are not filled"

# The same from --serve, under its policy of what a page may do.
horo timeline-view --serve "$HORO_SOURCE/tests/data/horovod-straggler.json.gz" >"$scratch/address" 2>"$scratch/errors" </dev/null &
server=$!
until [ -s "$scratch/address" ]; do
  kill -0 $server 2>/dev/null || fail "--serve has ended: $(cat "$scratch/errors")"
  sleep 0.05
done
page "$(cat "$scratch/address")"
kill -TERM $server
wait $server
expect_in "summary of what is served" "$(grep -o '<span id="summary">[^<]*' "$scratch/dom")" "operations of"
