#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# torchrun starts ranks that use libhoro, in any Python that has torch.
# shellcheck source=tests/standalone/lib.sh
. "$(dirname "$0")/lib.sh"

python=
for candidate in "$STANDALONE_PYTHON" python3 /usr/bin/python3; do
  "$candidate" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null || continue
  python=$candidate
  break
done
[ -n "$python" ] || skip "no Python with torch; scripts/packages --install run brings Debian's"

# torch 1.13's defaults for --redirects and --tee do not work under Python 3.11, so both are given.
torchrun() {
  timeout 100 "$python" -m torch.distributed.run --standalone --nproc_per_node 3 --redirects 1 --tee 1 --log_dir "$scratch/log" \
    --no_python "$@"
}

try torchrun "$rank" identity sum rounds=2
expect "exit code" "$code" 0
for r in 0 1 2; do expect_in "places" "$out" "rank $r of 3, local $r of 3, cross 0 of 1"; done
