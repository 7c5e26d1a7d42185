#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: elastic.sh TEXT: of three ranks one dies in the middle of a collective of device memory; the others go on without it.
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 3 >"$scratch/slots"
printf '#!/bin/sh\necho "localhost:$(cat %s/slots)"\n' "$scratch" >"$scratch/discover"
chmod +x "$scratch/discover"
output=$(timeout 100 "$HORO_RUN" --min-np 2 --max-np 3 --host-discovery-script "$scratch/discover" "$GPU_RANK" elastic "$scratch/slots" 2>&1)
code=$?
if [[ $code -ne 0 || $output != *"$1"* ]]; then
  echo "exit code $code; expected 0 and '$1' in:"
  echo "$output" | head -60
  exit 1
fi
