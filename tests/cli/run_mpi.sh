#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# horo run --mpi on a machine without MPI. Stand-ins play the mpirun of each implementation: they report its version and hand
# out ranks as its manual says. The tests check the command line that each gets, and that ranks start under it.
# tests/standalone/mpirun.sh uses real implementations.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
for variable in "${!OMPI_@}" "${!PMI@}"; do unset "$variable"; done

# stand_in NAME VERSION RANK SIZE LOCAL-RANK LOCAL-SIZE: writes an mpirun that reports VERSION, records its arguments, and
# starts the command behind its options -np times on this machine, with these variables set.
stand_in() {
  mkdir -p "$scratch/$1"
  cat >"$scratch/$1/mpirun" <<STAND_IN
#!/bin/bash
[ "\$*" = --version ] && { echo "$2"; exit; }
echo "\$*" >"$scratch/$1/words"
while [ "\${1##*/}" != horo-agent ]; do
  [ "\$1" = -np ] && n=\$2
  [ "\$1" = --fail ] && { echo "no slots for you"; exit 7; }
  shift
done
for ((r = 0; r < n; r++)); do
  env $3=\$r $4=\$n $5=\${MISPLACE-\$r} $6=\$n "\$@" &
done
wait
STAND_IN
  chmod +x "$scratch/$1/mpirun"
}
stand_in spectrum "mpirun (IBM Spectrum MPI) 10.4.0.06" OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE \
  OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE
stand_in intel "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307" PMI_RANK PMI_SIZE MPI_LOCALRANKID \
  MPI_LOCALNRANKS
stand_in openmpi "mpirun (Open MPI) 5.0.3" OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK \
  OMPI_COMM_WORLD_LOCAL_SIZE
stand_in mpich "HYDRA build details:" PMI_RANK PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS
stand_in unknown "Frobnicator 3" A B C D

# plan NAME WORD...: sets $out to mpirun's line in the plan, without -x and without the flag for root.
plan() {
  try horo run --mpi --mpirun "$scratch/$1/mpirun" "${@:2}" --dry-run true
  expect "exit code of the plan for $1" "$code" 0
  out=$(sed -n 's/^mpirun  *//p' <<<"$out" | sed 's/ -x [A-Za-z0-9_]*//g; s/ --allow-run-as-root//')
  out=${out/#$scratch\/$1\/}
}
agent="$HORO_BIN/horo-agent --dial-in"
plan openmpi -np 3 -H node1:2,node2:2
expect "Open MPI's command" "$out" "mpirun -np 3 -H node1:2,node2:1 -bind-to none -map-by slot $agent"
plan spectrum -np 3 -H node1:2,node2:2 --tcp
expect "Spectrum MPI's command" "$out" \
  "mpirun -np 3 -H node1:2,node2:1 -bind-to socket -map-by socket -rank-by core -tcp $agent"
plan mpich -np 3 -H node1:2,node2:2 --mpi-args=-print-all-exitcodes
expect "MPICH's command" "$out" "mpirun -np 3 -hosts node1:2,node2:1 -print-all-exitcodes $agent"
plan intel -np 4 -H node1:2,node2:2 '--binding-args=-bind-to core'
expect "Intel MPI's command" "$out" "mpirun -np 4 -ppn 2 -hosts node1,node2 -genvall -bind-to core $agent"
# The options of ssh and the network interfaces reach each MPI under its own names.
plan openmpi -np 2 -H node1:1,node2:1 -p 2222 -i /k --network-interfaces eth0,ib0
expect "Open MPI's command with ssh and interfaces" "$out" "mpirun -np 2 -H node1:1,node2:1 -bind-to none -map-by slot \
-mca plm_rsh_args '-p 2222 -i /k' -mca btl_tcp_if_include eth0,ib0 -mca oob_tcp_if_include eth0,ib0 $agent"
plan mpich -np 2 -H node1:1,node2:1 -p 2222 --network-interfaces eth0
expect "MPICH's command with ssh and interfaces" "$out" \
  "mpirun -np 2 -hosts node1:1,node2:1 -launcher ssh -iface eth0 $agent"
plan intel -np 2 -H node1:1,node2:1 -p 2222 --network-interfaces eth0
expect "Intel MPI's command with ssh and interfaces" "$out" "mpirun -np 2 -ppn 1 -hosts node1,node2 -genvall \
-bootstrap ssh -bootstrap-exec-args '-p 2222' -iface eth0 $agent"
# shellcheck disable=SC2016 # expanded by the rank's shell
try horo run --mpi --mpirun "$scratch/mpich/mpirun" -np 1 -p 2222 -i /k sh -c 'echo "$HYDRA_LAUNCHER_EXTRA_ARGS"'
expect "the variable of MPICH's mpirun" "$out" "-p 2222 -i /k"
# A real MPICH, if there is one, calls ssh with these arguments.
if real=$(command -v mpirun.mpich); then
  printf '#!/bin/sh\necho "$*" >"%s/ssh"\nexit 1\n' "$scratch" >"$scratch/fake-ssh"
  chmod +x "$scratch/fake-ssh"
  HYDRA_LAUNCHER_EXEC="$scratch/fake-ssh" try timeout 60 horo run --mpi --mpirun "$real" -H elsewhere:1 -p 2222 -i /k true
  expect_in "the arguments of MPICH's ssh" "$(cat "$scratch/ssh")" "-p 2222 -i /k"
fi
refused "MPICH takes one network interface, not eth0 and ib0" \
  horo run --mpi --mpirun "$scratch/mpich/mpirun" -np 1 --network-interfaces eth0,ib0 true
refused "the path must have no blanks" horo run --mpi --mpirun "$scratch/mpich/mpirun" -i "/a b" -np 1 true
try env GREETING=1 'odd name=2' horo run --mpi --mpirun "$scratch/openmpi/mpirun" -np 1 --dry-run --json true
python3 - "$scratch/out" <<'PY' || fail "the plan as JSON"
import json, sys
words = json.load(open(sys.argv[1]))["mpirun"]
exported = [words[i + 1] for i in range(len(words)) if words[i] == "-x"]
assert exported == sorted(exported) and "GREETING" in exported and "PATH" in exported, exported
assert "HORO_CONTROLLER" in exported and "odd name" not in exported and "HORO_RANK" not in exported, exported
assert not any("=" in name for name in exported), exported
PY

refused "Frobnicator 3" horo run --mpi --mpirun "$scratch/unknown/mpirun" -np 1 true
refused "name its mpirun with --mpirun" horo run --mpi --mpirun "$scratch/nowhere/mpirun" -np 1 true
refused "2 on 'a' and 1 on 'b'" horo run --mpi --mpirun "$scratch/intel/mpirun" -np 3 -H a:2,b:2 true
refused "the quote ' in" horo run --mpi --mpirun "$scratch/mpich/mpirun" --mpi-args "it's" -np 1 true
refused "MPICH has no option for --tcp" horo run --mpi --mpirun "$scratch/mpich/mpirun" --tcp -np 1 true
refused "rank 2 cannot be on host 'a' with --mpi" \
  horo run --mpi --mpirun "$scratch/mpich/mpirun" --map-by host -np 3 -H a:2,b:2 true
refused "--gloo excludes --mpi" horo run --mpi --gloo -np 1 true

# Under every stand-in, ranks have the right identity, read their standard input, and end with their exit code.
for mpi in spectrum intel openmpi mpich; do
  run=(timeout 60 horo run --mpi --mpirun "$scratch/$mpi/mpirun" -np 2)
  # shellcheck disable=SC2016 # expanded by each rank's shell
  try env GREETING='it is "me"' "${run[@]}" bash -c \
    'echo "$HORO_RANK/$HOROVOD_SIZE $LOCAL_RANK $HORO_CONTROLLER ${HORO_LAUNCHER-none} $GREETING"'
  expect "exit code under $mpi ($err)" "$code" 0
  expect "ranks under $mpi" "$(sort <<<"$out")" \
    "[0] 0/2 0 mpi none it is \"me\""$'\n'"[1] 1/2 1 mpi none it is \"me\""
  # shellcheck disable=SC2016 # expanded by each rank's shell
  try "${run[@]}" bash -c '[ "$HORO_RANK" = 0 ] && exec sleep 100; exit 5'
  expect "exit code of a failure under $mpi" "$code" 5
  expect_in "the report under $mpi" "$err" "rank 1 on localhost failed first: exit code 5"
  expect_in "the report under $mpi" "$err" "rank 0 ended afterwards: killed by signal 15"
done
run=(timeout 60 horo run --mpi --mpirun "$scratch/mpich/mpirun" -np 2)
# shellcheck disable=SC2016 # expanded by each rank's shell
try bash -c 'echo to rank 0 | "$@"' - "${run[@]}" --stdin rank0 bash -c '[ "$HORO_RANK" != 0 ] || cat'
expect "what rank 0 read" "$out" "[0] to rank 0"

# An error of mpirun is passed on in its own words. A placement that differs from the plan is refused.
try "${run[@]}" --mpi-args=--fail true
expect "exit code of an mpirun that fails" "$code" 1
expect_in "standard error" "$err" "mpirun: no slots for you"
expect_in "standard error" "$err" "mpirun (MPICH) ended with exit code 7 before it had started all ranks"
try env MISPLACE=0 "${run[@]}" true
expect "exit code of other placement" "$code" 1
expect_in "standard error" "$err" "mpirun (MPICH) started rank 1 as number 0 of 2"

# A wrong secret is refused at once.
try env HORO_LAUNCHER=127.0.0.1:1 HORO_LAUNCHER_SECRET=abc PMI_RANK=0 PMI_SIZE=1 "$HORO_BIN/horo-agent" --dial-in
expect "exit code of a wrong secret" "$code" 1
expect_in "standard error" "$err" "HORO_LAUNCHER_SECRET is not 64 hexadecimal digits"
try "$HORO_BIN/horo-agent" --dial-in
expect_in "standard error" "$err" "this agent does not know its rank"
