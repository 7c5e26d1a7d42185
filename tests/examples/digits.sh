#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# digits.sh HORO DIGITS: the C++ example reaches 94 % on 1, 2 and 4 ranks, within 1.5 % of each other, and prints its result
# once.
set -euo pipefail
horo=$1 digits=$2
least=101 most=0
for ranks in 1 2 4; do
  output=$("$horo" run -np "$ranks" --tag off "$digits")
  echo "$output"
  if ! [[ $output =~ ^$ranks\ rank\(s\):\ test\ accuracy\ ([0-9]+)\.([0-9]{2})\ %,\ [0-9]+\ images/s$ ]]; then
    echo "the output is not the one expected line"
    exit 1
  fi
  hundredths=$((10#${BASH_REMATCH[1]}${BASH_REMATCH[2]}))
  least=$((ranks == 1 || hundredths < least ? hundredths : least))
  most=$((hundredths > most ? hundredths : most))
done
if [ "$least" -lt 9400 ] || [ $((most - least)) -gt 150 ]; then
  echo "accuracies from $least to $most hundredths of a per cent: want 9400 and no more than 150 apart"
  exit 1
fi
