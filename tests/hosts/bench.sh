#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/hosts and bench/transports run with tiny sizes and write complete rows. This test does not judge any figure.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
[ -x "$HORO_BIN/bench_horo" ] || skip "built without HORO_BENCH"
command -v iperf3 >/dev/null || skip "no iperf3 here; scripts/packages --install bench brings it"
[ "$(id -u)" = 0 ] || skip "needs root to make network namespaces"

HORO_BUILD=$(dirname "$HORO_BIN") try timeout 100 "$HORO_SOURCE/bench/hosts" --parts sums --sizes 4,65536 --rounds 1 \
  --seconds 0.1 --who link,horo-c,horo-c-flat --json "$scratch/rows.json"
[ "$code" != 77 ] || skip "$out"
expect "exit code" "$code" 0
python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))
wanted = [(size, who) for size in (4, 65536) for who in ("link", "horo-c", "horo-c-flat")]
assert [(r["bytes"], r["who"]) for r in rows if r["case"] == "sizes"] == wanted, rows
assert all(r["link_ratio"] > 0 and r["ranks"] == 4 for r in rows if r["case"] == "sizes"), rows
sent = [r for r in rows if r["case"] == "sent"][0]
assert sent["bytes"] == 65536 and isinstance(sent["sent"], int), rows' "$scratch/rows.json" || fail "the rows: $(cat "$scratch/rows.json")"

[ -x "$HORO_BIN/bench_transport" ] || exit 0
HORO_BUILD=$(dirname "$HORO_BIN") try timeout 100 "$HORO_SOURCE/bench/transports" --sizes 4,65536 --rounds 1 --seconds 0.1 \
  --json "$scratch/transports.json"
expect "exit code" "$code" 0
python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))
found = {(r["bytes"], r["who"]) for r in rows if r["median_us"] > 0 and r["horo_ratio"] > 0}
assert found >= {(size, who) for size in (4, 65536) for who in ("horo", "horo-encrypt", "gloo")}, rows' \
  "$scratch/transports.json" || fail "the rows: $(cat "$scratch/transports.json")"
exit 0
