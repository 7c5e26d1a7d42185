#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo check-build prints a correct table even when Python is broken.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

# A stand-in for Python fixes the result: torch is installed, importing numpy fails, and all other modules are missing.
mkdir "$scratch/bin"
cat >"$scratch/bin/python3" <<'PYTHON'
#!/bin/bash
case $2 in
  *torch*) echo "a warning on the way" >&2; echo 9.9.9 ;;
  *numpy*) kill -SEGV $$ ;;
  *) echo "Traceback (most recent call last):" >&2; echo "ModuleNotFoundError: No module named" >&2; exit 1 ;;
esac
PYTHON
chmod +x "$scratch/bin/python3"
PATH="$scratch/bin:$PATH"

try horo check-build
expect "exit code" "$code" 0
expect "standard error" "$err" ""
expect_in "table" "$out" "[X] PyTorch      9.9.9"
expect_in "table" "$out" "[ ] NumPy "
expect_in "table" "$out" "[ ] JAX          ModuleNotFoundError: No module named"
expect_in "table" "$out" "[X] binding      --bind-to, with hwloc"
expect_in "table" "$out" "[X] one host     ranks of mpirun, srun, torchrun or a shell"
# A backend is listed as available if its module loads, otherwise with the reason.
lib=$HORO_BIN/../lib/horo
for backend in gloo openmpi mpich; do
  if [ -e "$lib/horo-backend-$backend.so" ]; then
    expect_in "table" "$out" "[X] $backend"
  else
    expect_in "table" "$out" "backend '$backend' is not in this build: there is no $lib/horo-backend-$backend.so"
  fi
done
if [ -e "$lib/horo-backend-nccl.so" ] && ! ldconfig -p | grep -q libcuda.so.1; then
  expect_in "table" "$out" "[ ] nccl         no CUDA driver: libcuda.so.1 is missing"
fi
case $out in *Traceback*) fail "the table contains a Python traceback" ;; esac

try horo check-build --json
expect "exit code" "$code" 0
printf '%s' "$out" | /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin python3 -c '
import json, sys
table = json.load(sys.stdin)
found = {row["name"]: row["available"] for row in table["findings"]}
assert found["PyTorch"] and not found["NumPy"] and not found["JAX"], found
' || fail "the JSON differs from the table"

refused "unexpected argument 'x'" horo check-build x
