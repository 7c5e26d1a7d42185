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
expect_in "table" "$out" "[X] PyTorch      9.9.9: by horo.torch"
expect_in "table" "$out" "[ ] NumPy "
expect_in "table" "$out" "[ ] JAX "
# Horo has no module for these, whether they are installed or not.
expect_in "table" "$out" "[ ] TensorFlow   Horo has no module for it"
expect_in "table" "$out" "[X] binding      --bind-to, with hwloc"
# Whether shared memory gets huge pages is the system's choice.
expect_in "table" "$out" "[X] shm          shared memory between the ranks of a host, "
case $(cat /sys/kernel/mm/transparent_hugepage/shmem_enabled 2>/dev/null) in
  *"[always]"* | *"[within_size]"* | *"[advise]"* | *"[force]"*) pages=", on huge pages" ;;
  *) pages=", no huge pages (transparent_hugepage/shmem_enabled grants none)" ;;
esac
expect_in "table" "$out" "$pages"
expect_in "table" "$out" "[X] one host     ranks of mpirun, srun, torchrun or a shell"
# A backend is listed as available if its module loads, otherwise with the reason.
lib=$HORO_BIN/../lib/horo
for backend in tcp gloo openmpi mpich; do
  if [ -e "$lib/horo-backend-$backend.so" ]; then
    expect_in "table" "$out" "[X] $backend"
  else
    expect_in "table" "$out" "backend '$backend' is not in this build: there is no $lib/horo-backend-$backend.so"
  fi
done
# The extension module is optional: without it, the row says what happens.
if [ -e "$lib/horo-fastpath.abi3.so" ]; then
  expect_in "table" "$out" "[X] fastpath     Python makes frequent calls by an extension module"
else
  expect_in "table" "$out" "[ ] fastpath     Python calls libhoro by ctypes, which takes longer: there is no "
fi
# Debian builds neither MPI with CUDA.
if [ -e "$lib/horo-backend-openmpi.so" ]; then expect_in "table" "$out" "Open MPI between any ranks; it is not CUDA-aware"; fi
if [ -e "$lib/horo-backend-mpich.so" ]; then expect_in "table" "$out" "MPICH between any ranks; it is not CUDA-aware"; fi
# Where there is no GPU, no collective uses these libraries, whatever else is installed.
if ! [ -e /dev/nvidiactl ]; then
  expect_in "table" "$out" "[ ] cuda         CUDA's driver cannot be loaded"
  expect_in "table" "$out" "[ ] nccl         CUDA's driver cannot be loaded"
fi
if ! [ -e /dev/kfd ]; then
  expect_in "table" "$out" "[ ] rocm         this host has no device of AMD that computes: there is no /dev/kfd"
  expect_in "table" "$out" "[ ] AMD driver   there is no GPU of AMD that computes"
fi
if [ -e "$lib/horo-kernels.hsaco" ]; then
  expect_in "table" "$out" "[X] HIP kernels"
else
  expect_in "table" "$out" "[ ] HIP kernels"
fi
case $out in *Traceback*) fail "the table contains a Python traceback" ;; esac

# libcrypto is loaded when it is needed. Its row has the library's own version, or the reason and the package.
if [ -e /usr/lib/x86_64-linux-gnu/libcrypto.so.3 ]; then expect_in "table" "$out" "[X] libcrypto    --encrypt, by OpenSSL 3."; fi
mkdir "$scratch/lib"
for version in 3 1.1; do : >"$scratch/lib/libcrypto.so.$version"; done
LD_LIBRARY_PATH=$scratch/lib try horo check-build
expect "exit code with a broken libcrypto" "$code" 0
expect_in "table with a broken libcrypto" "$out" "[ ] libcrypto    --encrypt (HORO_ENCRYPT) needs OpenSSL's libcrypto on every host"
expect_in "table with a broken libcrypto" "$out" "libcrypto.so.3: file too short; install Debian's libssl3"

# Launchers are there if their programs are. mpirun must be one that --mpi supports.
PATH="$scratch/bin:/usr/bin:/bin"
program() { printf '#!/bin/sh\necho "%s"\n' "$2" >"$scratch/bin/$1"; chmod +x "$scratch/bin/$1"; }
row() { PATH="$scratch/bin:$HORO_BIN" horo check-build | grep -F "] $1 "; }
for name in timeout grep env bash; do ln -sf "$(command -v $name)" "$scratch/bin/$name"; done
expect "mpirun's row" "$(row mpirun)" "    [ ] mpirun       --mpi: there is no program mpirun in PATH"
expect "LSF's row" "$(row lsf)" "    [ ] lsf          there is no program blaunch in PATH"
program mpirun "mpirun (Open MPI) 5.0.3"
program blaunch ""
program jsrun ""
expect "mpirun's row" "$(row mpirun)" "    [X] mpirun       --mpi, by $scratch/bin/mpirun of Open MPI"
expect "LSF's row" "$(row lsf)" "    [X] lsf          hosts of a job of LSF, by $scratch/bin/blaunch"
expect "jsrun's row" "$(row jsrun)" "    [X] jsrun        --jsrun, and hosts of a job of LSF, by $scratch/bin/jsrun"

# horovodrun's table, for scripts that look for its words.
table=$(PATH="$scratch/bin:$HORO_BIN" horovodrun -cb)
for line in "Available Frameworks:" "    [ ] TensorFlow" "    [X] PyTorch" "    [ ] MXNet" "Available Controllers:" \
  "    [X] MPI" "    [X] Gloo" "Available Tensor Operations:" "    [ ] NCCL" "    [ ] DDL" "    [ ] CCL"; do
  grep -qxF "$line" <<<"$table" || fail "horovodrun's table lacks '$line': $table"
done
case $table in "Horovod v0.28.1"*) ;; *) fail "horovodrun's table begins with '${table%%$'\n'*}'" ;; esac
program mpirun "Frobnicator 3"
expect_in "mpirun's row" "$(row mpirun)" "[ ] mpirun       --mpi: '$scratch/bin/mpirun --version' says 'Frobnicator 3'"
table=$(PATH="$scratch/bin:$HORO_BIN" horo run --horovod --check-build)
expect "controllers" "$(grep -A2 Controllers <<<"$table")" "Available Controllers:
    [ ] MPI
    [X] Gloo"
PATH="$HORO_BIN:$scratch/bin:/usr/local/bin:/usr/bin:/bin"

try horo check-build --json
expect "exit code" "$code" 0
printf '%s' "$out" | /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin python3 -c '
import json, sys
table = json.load(sys.stdin)
found = {row["name"]: row["available"] for row in table["findings"]}
assert found["PyTorch"] and not found["NumPy"] and not found["JAX"], found
' || fail "the JSON differs from the table"

refused "unexpected argument 'x'" horo check-build x
