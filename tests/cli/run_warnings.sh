#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A setting that horo does not act on is a warning that names it, once per job, whatever way it was set.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
probe="$HORO_BIN/../tests/horo_probe"

# warns TEXT COMMAND...: COMMAND succeeds and writes exactly one line on standard error, which contains TEXT.
warns() {
  local text=$1
  shift
  try "$@"
  expect "exit code of $*" "$code" 0
  expect "number of lines on standard error of $*" "$(wc -l <"$scratch/err")" 1
  expect_in "warning of $*" "$err" "$text"
}

# silent COMMAND...: COMMAND succeeds and writes nothing on standard error.
silent() {
  try "$@"
  expect "exit code of $*" "$code" 0
  expect "standard error of $*" "$err" ""
}

# A knob that nothing reads, from a flag, a variable under either name, and a file; and the program's ranks do not repeat it.
none="has no effect: "
printf 'params:\n  hierarchical_allgather: false\n' >"$scratch/gather.yaml"
warns "hierarchical.allgather (flag --no-hierarchical-allgather) $none" horo run -np 2 --no-hierarchical-allgather "$probe"
warns "hierarchical.allgather (environment HORO_HIERARCHICAL_ALLGATHER) $none" env HORO_HIERARCHICAL_ALLGATHER=0 horo run -np 2 "$probe"
warns "hierarchical.allgather (environment HOROVOD_HIERARCHICAL_ALLGATHER) $none" env HOROVOD_HIERARCHICAL_ALLGATHER=0 horo run -np 2 "$probe"
warns "hierarchical.allgather (config $scratch/gather.yaml:2:27) $none" horo run -np 2 --config-file "$scratch/gather.yaml" "$probe"
silent horo run -np 2 --hierarchical-allgather "$probe"
warns "autotune.gaussian.process.noise (flag --autotune-gaussian-process-noise) has no effect: the autotuner measures the noise" \
  horo run -np 1 --autotune-gaussian-process-noise=0.5 --dry-run true
silent horo run -np 1 --num-nccl-streams 2 --dry-run true
silent horo run -np 1 --torus-allreduce --dry-run true
warns "torus.allreduce (flag --no-torus-allreduce) has no effect" horo run -np 1 --no-torus-allreduce --dry-run true

# A rank warns of what its program sets in its own process, and of everything without horo run.
# shellcheck disable=SC2016
warns "hierarchical.allgather (environment HOROVOD_HIERARCHICAL_ALLGATHER) $none" \
  horo run -np 2 sh -c 'HOROVOD_HIERARCHICAL_ALLGATHER=0 exec "$0"' "$probe"
warns "hierarchical.allgather (environment HOROVOD_HIERARCHICAL_ALLGATHER) $none" env HOROVOD_HIERARCHICAL_ALLGATHER=0 "$probe"

# Variables of Horovod.
warns "the variable HOROVOD_FUSION_TRESHOLD is unknown and has no effect; did you mean 'HOROVOD_FUSION_THRESHOLD'?" \
  env HOROVOD_FUSION_TRESHOLD=1 horo run -np 2 "$probe"
warns "the variable HOROVOD_CONTROLLER=mpi has no effect: --mpi lets mpirun start the ranks" \
  env HOROVOD_CONTROLLER=mpi horo run -np 2 "$probe"
silent env HOROVOD_CONTROLLER=Gloo HOROVOD_DYNAMIC_PROCESS_SETS=1 HOROVOD_GPU_OPERATIONS=NCCL horo run -np 2 "$probe"
HOROVOD_CONTROLLER=x refused "controller: 'x' (environment HOROVOD_CONTROLLER) must be gloo or mpi" horo run -np 1 true

# Options for another way of starting ranks, a script that is asked once, and interfaces that this machine does not have.
warns "mpi.args (flag --mpi-args) has no effect: it is only for --mpi and --jsrun" horo run -np 1 --mpi-args=-x --dry-run true
warns "binding.args (flag --binding-args) has no effect" horo run -np 1 --binding-args=-x --dry-run true
warns "mpirun (environment HORO_MPIRUN) has no effect: it is only for --mpi" env HORO_MPIRUN=m horo run -np 1 --dry-run true
warns "ssh.identity.file (flag --ssh-identity-file) has no effect: '$scratch/no.key' cannot be read: No such file or directory" \
  horo run -np 1 -i "$scratch/no.key" --dry-run true
touch "$scratch/a.key"
silent horo run -np 1 -i "$scratch/a.key" --dry-run true
silent horo run -H none:0,localhost:1 --dry-run true
refused "-H: no host has a slot (a:0, b:0); give at least one of them a number of slots" horo run -H a:0,b:0 --dry-run true
printf '#!/bin/sh\necho "localhost:$1"\n' >"$scratch/discover"
chmod +x "$scratch/discover"
warns "hosts that it names later do not join" horo run --host-discovery-script "$scratch/discover 2" --dry-run true
expect_in "the plan" "$out" "1 of 2"
silent horo run --host-discovery-script "$scratch/discover 2" --min-np 1 --dry-run true
warns "reset.limit (flag --reset-limit) has no effect in a job that is not elastic; give --min-np N" \
  horo run -np 1 --reset-limit 3 --dry-run true
silent horo run -np 1 --min-np 1 --reset-limit 3 --dry-run true
warns "this machine has no network interface 'nic9' (flag --network-interfaces)" \
  horo run -np 1 --network-interfaces nic9 "$probe"

warns "this machine has no network interface 'nic9' (environment HOROVOD_GLOO_IFACE)" \
  env HOROVOD_GLOO_IFACE=nic9 horo run -np 1 "$probe"

[ -d /proc/driver/nvidia/gpus ] || warns "gpus (flag --gpus) has no effect on host 'localhost': it has no GPU" \
  horo run -np 1 --gpus auto --dry-run true

# Knobs that need another one.
warns "timeline.mark.cycles (flag --timeline-mark-cycles) has no effect without a file" \
  horo run -np 1 --timeline-mark-cycles --dry-run true
silent horo run -np 1 --timeline-mark-cycles --timeline-filename "$scratch/trace" --dry-run true
silent horo run -np 1 --no-timeline-mark-cycles --dry-run true
warns "restart.on (flag --restart-on) has no effect without restarts" horo run -np 1 --restart-on 75 --dry-run true
silent horo run -np 1 --restart-on 75 --max-restarts 1 --dry-run true
warns "prefix (flag --prefix) has no effect with --tag off" horo run -np 1 --prefix x --tag off --dry-run true
warns "slots.per.host (flag --slots-per-host) has no effect without hosts" horo run -np 1 --slots-per-host 2 --dry-run true
silent horo run -H localhost --slots-per-host 2 --dry-run true
warns "--json has no effect without --dry-run" horo run -np 1 --json true
silent horo run -np 1 --dry-run --json true
try horo run -np 1 --plan-out "$scratch/plan" true
warns "map.by (environment HORO_MAP_BY) has no effect on a saved plan" \
  env HORO_MAP_BY=spread horo run --plan "$scratch/plan" --dry-run

# Like horovodrun: unknown keys and values above the range are warnings.
printf 'params:\n  fusion_treshold_mb: 3\n' >"$scratch/unknown.yaml"
warns "unknown.yaml:2:3: the key 'params.fusion_treshold_mb' is unknown and has no effect" \
  horo run --horovod -np 1 --config-file "$scratch/unknown.yaml" --dry-run true
printf 'later: [1, 2]\n' >"$scratch/later.yaml"
warns "later.yaml:1:1: the key 'later' is unknown and has no effect" \
  horo run --horovod -np 1 --config-file "$scratch/later.yaml" --dry-run true
refused "unknown key 'params.fusion_treshold_mb'" horo run -np 1 --config-file "$scratch/unknown.yaml" true
warns "is above the largest value, 1GiB, which is used" horo run -np 2 --fusion-threshold-mb 4096 "$probe"
silent horo run -np 2 --cache-capacity 0 --start-timeout 0 "$probe"

# The core of each rank's own thread.
silent horo run -np 2 --thread-affinity 0,0 "$probe"
refused "thread.affinity: 'x' (flag --thread-affinity) must be core numbers" horo run -np 1 --thread-affinity x true
refused "has 1 cores, but host 'localhost' has 2 ranks" horo run -np 2 --thread-affinity 0 true
try horo run -np 1 --thread-affinity 9999 "$probe"
expect_in "standard error" "$err" "local rank 0 cannot run on core 9999 of '9999'"
try env HOROVOD_THREAD_AFFINITY=0 "$probe" cores
grep -qx 'cores 0' <<<"$out" || fail "the runtime's thread is not on core 0"
