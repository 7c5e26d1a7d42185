#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# digits.sh HORO EXAMPLE LEAST RANKS...: the example reaches LEAST % on each number of ranks, within 1.5 % of each other,
# and says so once.
set -euo pipefail
horo=$1 example=$2 wanted=$3
shift 3
least=10100 most=0
for ranks in "$@"; do
  output=$("$horo" run -np "$ranks" --tag off "$example")
  echo "$output"
  if ! [[ $output =~ ^$ranks\ rank\(s\):\ test\ accuracy\ ([0-9]+)\.([0-9]{2})\ %,\ [0-9]+\ images/s$ ]]; then
    echo "not the one line expected"
    exit 1
  fi
  hundredths=$((10#${BASH_REMATCH[1]}${BASH_REMATCH[2]}))
  least=$((hundredths < least ? hundredths : least))
  most=$((hundredths > most ? hundredths : most))
done
if [ "$least" -lt $((wanted * 100)) ] || [ $((most - least)) -gt 150 ]; then
  echo "accuracies from $least to $most hundredths of a per cent: want $wanted % and no more than 150 apart"
  exit 1
fi
