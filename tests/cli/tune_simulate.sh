#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo tune --simulate predicts the best settings on a described cluster, the same each time, and refuses files that make no sense.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
cat >"$scratch/cluster.yaml" <<YAML
hosts:
  - {count: 4, ranks: 2}
links: {latency_us: 5000, gbit_per_s: 1}
training:
  compute_ms: 20
  tensors:
    - {bytes: 4000, count: 400}
    - {bytes: 400000, count: 1}
YAML

try horo tune --simulate "$scratch/cluster.yaml" --json --config-out "$scratch/tuned.yaml"
case $err in *"has no simulator"*) echo "a build with sanitizers has no simulator"; exit 77 ;; esac
expect "exit code" "$code" 0
# field EXPRESSION: a part of the JSON in $out, which is `d` in the expression.
field() { python3 -c "import json, sys; d = json.load(sys.stdin); print($1)" <<<"$out"; }
expect "kind" "$(field 'd["kind"]')" simulation
expect "whether a setting is predicted to be better" "$(field 'd["keep_best"] and d["gain"]["gain"] > 0.02')" True
expect "whether tiny buffers are slow where the latency is long" \
  "$(field 'min(d["settings"], key=lambda s: s["score"])["values"][0] == min((s["values"][0] for s in d["settings"]), key=float)')" True
expect_in "note" "$(field 'd["notes"][0]')" "predicted for 8 ranks on 4 hosts: a step takes"
expect_in "config file" "$(cat "$scratch/tuned.yaml")" "fusion.threshold: "
first=$out
try horo tune --simulate "$scratch/cluster.yaml" --json --config-out "$scratch/tuned.yaml"
expect "the second prediction" "$out" "$first"

refused "must describe two hosts or more, and a 'training'" horo tune --simulate "$HORO_SOURCE/bench/clusters/uneven.yaml"
sed 's/compute_ms: 20/compute_ms: -5/' "$scratch/cluster.yaml" >"$scratch/absurd.yaml"
refused "absurd.yaml" horo tune --simulate "$scratch/absurd.yaml"
sed 's/  - {count: 4, ranks: 2}/  - {count: 4, ranks: }/; s/hosts:/host:/' "$scratch/cluster.yaml" >"$scratch/missing.yaml"
refused "missing.yaml" horo tune --simulate "$scratch/missing.yaml"
for option in "--budget 5m" "--resume state" "-np 4" "--fusion-threshold 1MiB" "--log x.csv" "--dry-run"; do
  # shellcheck disable=SC2086 # The option and its value are two words.
  refused "--simulate takes only --json, --html and --config-out" horo tune --simulate "$scratch/cluster.yaml" $option
done
for wrong in 's/ranks: 2/ranks: 100/' 's/compute_ms: 20/compute_ms: 50000000/' 's/gbit_per_s: 1/gbit_per_s: 0.001/; s/bytes: 400000,/bytes: 2000000000,/'; do
  sed "$wrong" "$scratch/cluster.yaml" >"$scratch/large.yaml"
  refused "large.yaml" horo tune --simulate "$scratch/large.yaml"
done
refused "--simulate runs no command" horo tune --simulate "$scratch/cluster.yaml" train
