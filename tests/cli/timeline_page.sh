#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The page of horo timeline-view --html works in a browser: it fills its tables, draws, and reports no error.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

browser=$(command -v chromium || command -v chromium-browser) || { echo "no chromium (Debian: chromium)"; exit 77; }

# page ADDRESS: prints the page after its script has run; the browser's console is in $scratch/console.
page() {
  timeout 100 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$scratch/profile" \
    --virtual-time-budget=3000 ${window:+"$window"} --enable-logging=stderr --dump-dom "$1" >"$scratch/dom" 2>"$scratch/console" </dev/null
  code=$?
  expect "exit code of the browser" "$code" 0
  if grep -E 'CONSOLE.*(Error|Uncaught)' "$scratch/console"; then fail "the page's script has failed"; fi
}

try horo timeline-view --html "$scratch/report.html" "$HORO_SOURCE/tests/data/horovod-straggler.json.gz"
expect "exit code" "$code" 0
# A check at the end of the page, which can reach all variables of its script.
sed 's|</body>|<script>\
const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data, colors = new Set();\
for (let i = 0; i < pixels.length; i += 4) colors.add(pixels[i] << 16 \| pixels[i + 1] << 8 \| pixels[i + 2]);\
const search = text => { by("search").value = text; by("search").dispatchEvent(new Event("input")); return matches.length; };\
const inside = lanes.buckets.flatMap(names => names.slice(1)).find(name => !operations.some(o => o[4] === name));\
const fused = inside === undefined \|\| search(lanes.texts[inside]) > 0;\
const seen = () => new Set(new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer));\
search(""); draw(); const plain = seen(); const found = search("layer3"); draw(); const marks = seen(), green = pixelOf(rgb(palette["--hit"]));\
const marked = !plain.has(green) \&\& marks.has(green);\
const first = operations[0], told_of = describe({ offsetX: x(first[0] + first[3] / 2), offsetY: kTop + rowOf[0] * kRow + 9 }).includes("moves");\
 step(1); const zoomed = to - from < last / 2;\
document.dispatchEvent(new KeyboardEvent("keydown", { key: "0" })); const whole = to - from >= last;\
const paper = color("--paper"); by("theme").click(); const turned = color("--paper") !== paper;\
document.title = ["colors", colors.size > 5, "found", found > 0, "zoomed", zoomed, "whole", whole, "turned", turned, "fused", fused, inside !== undefined, "marked", marked, "told", told_of].join(" ");\
</script></body>|' "$scratch/report.html" >"$scratch/checked.html"
page "file://$scratch/checked.html"
expect_in "what the page can do" "$(grep -o '<title>.*</title>' "$scratch/dom")" \
  "colors true found true zoomed true whole true turned true fused true true marked true told true"
expect_in "summary" "$(grep -o '<span id="summary">[^<]*' "$scratch/dom")" "operations of"
[ "$(grep -o '<svg viewBox' "$scratch/dom" | wc -l)" = 3 ] || fail "not three plots"
[ "$(grep -o '<circle\|<rect' "$scratch/dom" | wc -l)" -gt 10 ] || fail "the plots are empty"
[ "$(grep -o '<tr' "$scratch/dom" | wc -l)" -gt 15 ] || fail "the tables are not filled"

# Each rank's device has a lane and the table of devices is filled.
try horo timeline-view --html "$scratch/devices.html" "$HORO_SOURCE/tests/data/horo-devices.json.gz"
sed 's|</body>|<script>\
const lane = operationRows + ranks.length, works = picture[lane];\
const told_of = describe({ offsetX: x((works.edges[0][0] + works.edges[1][0]) / 2), offsetY: kTop + lane * kRow + 9 });\
document.title = ["lanes", picture.length - lane, "label", labelOf(lane), "told", told_of.includes("NCCL_ALLREDUCE"), "rows", document.querySelectorAll("#devices tbody tr").length].join(" ");\
</script></body>|' "$scratch/devices.html" >"$scratch/checked.html"
page "file://$scratch/checked.html"
expect_in "the page of devices" "$(grep -o '<title>.*</title>' "$scratch/dom")" "lanes 2 label GPU, rank 0 told true rows 3"

# A page of 4,000 ranks: its canvas is no higher than the window, operations stay visible, and every lane can be reached by
# scrolling. The lane of rank 3999 differs from the other lanes, which wait in the first half.
python3 - "$scratch/report.html" >"$scratch/many.html" <<'PY' || fail "the page of many ranks cannot be made"
import json, sys
page = open(sys.argv[1], encoding="utf-8").read()

def change(name, how):
    global page
    begin = page.index('<script id="%s" type="application/json">' % name)
    begin = page.index(">", begin) + 1
    end = page.index("</script>", begin)
    value = json.loads(page[begin:end])
    how(value)
    page = page[:begin] + json.dumps(value).replace("<", "\\u003c") + page[end:]

def many_lanes(lanes):
    end = sum(o[0] for o in lanes["operations"])
    lanes["waits"] = [[rank, [0, end / 2] if rank < 3999 else [end / 2, end / 2]] for rank in range(4000)]

def many_ranks(figures):
    figures["ranks"] = [dict(figures["ranks"][0], rank=rank, caused_wait_ns=rank) for rank in range(4000)]
    figures["late"]["ranks"] = [{"rank": rank, "mean_ns": [rank] * 40} for rank in range(4000)]

change("lanes", many_lanes)
change("figures", many_ranks)
print(page.replace("</body>", """<script>
const press = key => { canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })); draw(); };
const turn = more => { canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: 180, cancelable: true, clientX: 400, clientY: 300, ...more })); draw(); };
const red = (share, y) => new Uint32Array(pen.getImageData(x(share * last) | 0, y, 1, 1).data.buffer)[0] === pixelOf(rgb(palette["--wait"]));
const ranksAt = kTop + operationRows * kRow, bottom = canvas.clientHeight - 8 - kRow / 2, hint = y => describe({ offsetX: x(last * 0.75), offsetY: y });
const plain = () => { const data = pen.getImageData(kMargin, kTop, canvas.width - kMargin, operationRows * kRow - 2).data; return data.join(); };
const bounded = canvas.height <= innerHeight && height > 72000, first = red(0.25, ranksAt + 9) && !red(0.75, ranksAt + 9), operationsAtTop = plain();
press("End"); const end = red(0.75, bottom) && !red(0.25, bottom) && red(0.25, bottom - kRow) && hint(bottom).startsWith("rank 3999 waits");
const stay = plain() === operationsAtTop;
press("Home"); const home = scroller.scrollTop === 0 && red(0.25, ranksAt + 9);
press("PageDown"); const paged = scroller.scrollTop; press("ArrowUp"); const keys = paged > 0 && paged < canvas.clientHeight && scroller.scrollTop === paged - kRow;
turn({ shiftKey: true }); const wheel = scroller.scrollTop === paged - kRow + 180 && to - from >= last;
turn({ deltaY: -180 }); const zoomed = scroller.scrollTop === paged - kRow + 180 && to - from < last;
const rows = () => by("ranks").rows.length, few = rows() === 201 && by("ranks").rows[1].cells[0].textContent === "3999"; by("every").click(); const every = rows() === 4001;
const spots = by("late").querySelectorAll("rect"), latest = spots.length < 5000 && spots[spots.length - 1].textContent.startsWith("rank 3999, ");
document.title = JSON.stringify({ bounded, first, end, stay, home, keys, wheel, zoomed, few, every, latest });
</script></body>"""))
PY
window=--window-size=1400,900 page "file://$scratch/many.html"
expect "what the page of many ranks can do" "$(grep -o '<title>{[^<]*' "$scratch/dom")" \
  "<title>{$(printf '"%s":true,' bounded first end stay home keys wheel zoomed few every latest | sed 's/,$//')}"

# The same page from --serve, under its content security policy.
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
