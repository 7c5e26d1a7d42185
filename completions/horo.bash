# shellcheck shell=bash disable=SC2207
# SPDX-License-Identifier: Apache-2.0
# Generated: horo-docs bash > completions/horo.bash
_horo() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  local i value
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W 'run check-build discover timeline-view top shrink grow tune --help --version' -- "$word"))
    return
  fi
  case $command in
    run)
      for ((i = 2, value = 0; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
          --num-proc|-n|--hosts|-H|--hostfile|--host-discovery-script|--config-file|--plan|--plan-out|--fusion-threshold|--cycle-time|--cache-capacity|--wake-delay|--small-message|--spin-time|--wire-dtype|--tree-radix|--shm-chunk|--shm-ring|--arena-size|--slots-per-host|--ranks-per-host|--map-by|--bind-to|--gpus|--discovery-timeout|--starter|--rsh-agent|--ssh-port|-p|--ssh-identity-file|-i|--ssh-program|--fanout|--network-interfaces|--env-allow|--env-deny|--min-np|--max-np|--spares|--elastic-timeout|--rejoin-timeout|--term-grace|--reset-limit|--slot-restarts|--blacklist-cooldown-range|--start-timeout|--timeout|--failure-grace|--grace|--signal|--max-restarts|--restart-on|--heartbeat-timeout|--release-timeout|--tag|--prefix|--output-ranks|--fold|--output-filename|--stdin|--json-report|--log-level|--autotune-log-file|--autotune-warmup-samples|--autotune-steps-per-sample|--autotune-bayes-opt-max-samples|--autotune-memory|--autotune-watch-time|--autotune-gaussian-process-noise|--timeline-memory|--timeline-seconds|--timeline-directory|--timeline-filename|--timeline-limit|--stall-warning-time|--stall-shutdown-time|--cpu-operations|--gpu-operations|--gpu-driver|--torch-backend|--gpu-nccl|--gloo-iface|--gloo-timeout|--num-nccl-streams|--thread-affinity|--mpirun|--mpi-args|--binding-args|-np) value=1 ;;
          =) value=1 ;;
          -*) value=0 ;;
          *)
            if ((!value)); then
              declare -F _command_offset >/dev/null && _command_offset "$i"
              return
            fi
            value=0
            ;;
        esac
      done
      case $before in
        --wire-dtype) COMPREPLY=($(compgen -W 'none bfloat16 float16' -- "$word")); return ;;
        --map-by) COMPREPLY=($(compgen -W 'pack spread host' -- "$word")); return ;;
        --bind-to) COMPREPLY=($(compgen -W 'auto core numa gpu none' -- "$word")); return ;;
        --gpus) COMPREPLY=($(compgen -W 'off auto' -- "$word")); return ;;
        --starter) COMPREPLY=($(compgen -W 'auto ssh slurm lsf' -- "$word")); return ;;
        --signal) COMPREPLY=($(compgen -W 'off usr1 usr2 term' -- "$word")); return ;;
        --tag) COMPREPLY=($(compgen -W 'auto rank off' -- "$word")); return ;;
        --fold) COMPREPLY=($(compgen -W 'auto on off' -- "$word")); return ;;
        --stdin) COMPREPLY=($(compgen -W 'auto none rank0' -- "$word")); return ;;
        --log-level) COMPREPLY=($(compgen -W 'trace debug info warning error fatal' -- "$word")); return ;;
        --cpu-operations) COMPREPLY=($(compgen -W 'auto shm tcp gloo mpi' -- "$word")); return ;;
        --gpu-operations) COMPREPLY=($(compgen -W 'auto nccl ipc staged' -- "$word")); return ;;
        --torch-backend) COMPREPLY=($(compgen -W 'unchanged horo' -- "$word")); return ;;
        --hostfile|--host-discovery-script|--config-file|--plan|--plan-out|--rsh-agent|--ssh-identity-file|-i|--ssh-program|--output-filename|--json-report|--autotune-log-file|--autotune-memory|--timeline-directory|--timeline-filename|--mpirun) compopt -o default; return ;;
        --num-proc|-n|--hosts|-H|--fusion-threshold|--cycle-time|--cache-capacity|--wake-delay|--small-message|--spin-time|--tree-radix|--shm-chunk|--shm-ring|--arena-size|--slots-per-host|--ranks-per-host|--discovery-timeout|--ssh-port|-p|--fanout|--network-interfaces|--env-allow|--env-deny|--min-np|--max-np|--spares|--elastic-timeout|--rejoin-timeout|--term-grace|--reset-limit|--slot-restarts|--blacklist-cooldown-range|--start-timeout|--timeout|--failure-grace|--grace|--max-restarts|--restart-on|--heartbeat-timeout|--release-timeout|--prefix|--output-ranks|--autotune-warmup-samples|--autotune-steps-per-sample|--autotune-bayes-opt-max-samples|--autotune-watch-time|--autotune-gaussian-process-noise|--timeline-memory|--timeline-seconds|--timeline-limit|--stall-warning-time|--stall-shutdown-time|--gpu-driver|--gpu-nccl|--gloo-iface|--gloo-timeout|--num-nccl-streams|--thread-affinity|--mpi-args|--binding-args) return ;;
      esac
      case $word in
        -*) COMPREPLY=($(compgen -W '--help --version --num-proc --hosts --hostfile --host-discovery-script --config-file --horovod --plan --plan-out --dry-run --json --explain-config --check-build --mpi --jsrun --fusion-threshold --group-fusion --no-group-fusion --cycle-time --cache-capacity --wake-delay --small-message --spin-time --deterministic --no-deterministic --hierarchical-allreduce --no-hierarchical-allreduce --hierarchical-allgather --no-hierarchical-allgather --torus-allreduce --no-torus-allreduce --wire-dtype --wire-error-feedback --no-wire-error-feedback --tree-radix --shm-chunk --shm-ring --arena-size --slots-per-host --ranks-per-host --map-by --bind-to --gpus --discovery-timeout --starter --rsh-agent --ssh-port --ssh-identity-file --ssh-program --fanout --network-interfaces --env-allow --env-deny --min-np --max-np --spares --elastic-timeout --rejoin-timeout --term-grace --reset-limit --slot-restarts --blacklist-cooldown-range --start-timeout --timeout --failure-grace --grace --signal --max-restarts --restart-on --heartbeat-timeout --release-timeout --tag --prefix --prefix-timestamp --no-prefix-timestamp --output-ranks --fold --output-filename --stdin --json-report --verbose --no-verbose --log-level --log-timestamp --no-log-timestamp --autotune --no-autotune --autotune-log-file --autotune-warmup-samples --autotune-steps-per-sample --autotune-bayes-opt-max-samples --autotune-memory --autotune-watch-time --autotune-gaussian-process-noise --timeline-recorder --no-timeline-recorder --timeline-memory --timeline-seconds --timeline-directory --timeline-filename --timeline-mark-cycles --no-timeline-mark-cycles --timeline-all-ranks --no-timeline-all-ranks --timeline-nvtx --no-timeline-nvtx --timeline-limit --stall-check --no-stall-check --stall-warning-time --stall-shutdown-time --cpu-operations --gpu-operations --gpu-driver --torch-backend --gpu-nccl --gpu-async-completion --no-gpu-async-completion --encrypt --no-encrypt --gloo-iface --gloo-timeout --mpi-threads-disable --no-mpi-threads-disable --num-nccl-streams --thread-affinity --mpirun --mpi-args --binding-args --tcp --no-tcp' -- "$word")) ;;
        *) COMPREPLY=($(compgen -c -- "$word")) ;;
      esac
      ;;
    check-build)
      case $before in
      esac
      case $word in
        -*) COMPREPLY=($(compgen -W '--help --version --json --horovod' -- "$word")) ;;
      esac
      ;;
    discover)
      case $before in
        --hostfile|--host-discovery-script) compopt -o default; return ;;
        --hosts|-H|--slots-per-host|--ranks-per-host|--discovery-timeout) return ;;
      esac
      case $word in
        -*) COMPREPLY=($(compgen -W '--help --version --json --hosts --hostfile --host-discovery-script --slots-per-host --ranks-per-host --discovery-timeout' -- "$word")) ;;
      esac
      ;;
    timeline-view)
      case $before in
        --html) compopt -o default; return ;;
        --export|--snapshot|--live|--rank|--from|--to|--top|--interval|--hosts) return ;;
      esac
      case $word in
        -*) COMPREPLY=($(compgen -W '--help --version --json --csv --html --export --serve --compare --snapshot --live --follow --rank --from --to --top --interval --once --hosts' -- "$word")) ;;
        *) compopt -o default ;;
      esac
      ;;
    top)
      case $before in
        --interval|--hosts) return ;;
      esac
      case $word in
        -*) COMPREPLY=($(compgen -W '--help --version --json --interval --once --hosts' -- "$word")) ;;
      esac
      ;;
    shrink)
      case $before in
      esac
      case $word in
        -*) COMPREPLY=($(compgen -W '--help --version --dry-run' -- "$word")) ;;
      esac
      ;;
    grow)
      case $before in
      esac
      case $word in
        -*) COMPREPLY=($(compgen -W '--help --version --dry-run' -- "$word")) ;;
      esac
      ;;
    tune)
      for ((i = 2, value = 0; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
          --log|--simulate|--html|--forget|--export|--budget|--trials|--failures|--space|--resume|--config-out|--num-proc|-n|--hosts|-H|--hostfile|--host-discovery-script|--config-file|--plan|--fusion-threshold|--cycle-time|--cache-capacity|--wake-delay|--small-message|--spin-time|--wire-dtype|--tree-radix|--shm-chunk|--shm-ring|--arena-size|--slots-per-host|--ranks-per-host|--map-by|--bind-to|--gpus|--discovery-timeout|--starter|--rsh-agent|--ssh-port|-p|--ssh-identity-file|-i|--ssh-program|--fanout|--network-interfaces|--env-allow|--env-deny|--min-np|--max-np|--spares|--elastic-timeout|--rejoin-timeout|--term-grace|--reset-limit|--slot-restarts|--blacklist-cooldown-range|--start-timeout|--timeout|--failure-grace|--grace|--signal|--max-restarts|--restart-on|--heartbeat-timeout|--release-timeout|--tag|--prefix|--output-ranks|--fold|--output-filename|--stdin|--json-report|--log-level|--autotune-log-file|--autotune-warmup-samples|--autotune-steps-per-sample|--autotune-bayes-opt-max-samples|--autotune-memory|--autotune-watch-time|--autotune-gaussian-process-noise|--timeline-memory|--timeline-seconds|--timeline-directory|--timeline-filename|--timeline-limit|--stall-warning-time|--stall-shutdown-time|--cpu-operations|--gpu-operations|--gpu-driver|--torch-backend|--gpu-nccl|--gloo-iface|--gloo-timeout|--num-nccl-streams|--thread-affinity|--mpirun|--mpi-args|--binding-args|-np) value=1 ;;
          =) value=1 ;;
          -*) value=0 ;;
          *)
            if ((!value)); then
              declare -F _command_offset >/dev/null && _command_offset "$i"
              return
            fi
            value=0
            ;;
        esac
      done
      case $before in
        --wire-dtype) COMPREPLY=($(compgen -W 'none bfloat16 float16' -- "$word")); return ;;
        --map-by) COMPREPLY=($(compgen -W 'pack spread host' -- "$word")); return ;;
        --bind-to) COMPREPLY=($(compgen -W 'auto core numa gpu none' -- "$word")); return ;;
        --gpus) COMPREPLY=($(compgen -W 'off auto' -- "$word")); return ;;
        --starter) COMPREPLY=($(compgen -W 'auto ssh slurm lsf' -- "$word")); return ;;
        --signal) COMPREPLY=($(compgen -W 'off usr1 usr2 term' -- "$word")); return ;;
        --tag) COMPREPLY=($(compgen -W 'auto rank off' -- "$word")); return ;;
        --fold) COMPREPLY=($(compgen -W 'auto on off' -- "$word")); return ;;
        --stdin) COMPREPLY=($(compgen -W 'auto none rank0' -- "$word")); return ;;
        --log-level) COMPREPLY=($(compgen -W 'trace debug info warning error fatal' -- "$word")); return ;;
        --cpu-operations) COMPREPLY=($(compgen -W 'auto shm tcp gloo mpi' -- "$word")); return ;;
        --gpu-operations) COMPREPLY=($(compgen -W 'auto nccl ipc staged' -- "$word")); return ;;
        --torch-backend) COMPREPLY=($(compgen -W 'unchanged horo' -- "$word")); return ;;
        --log|--simulate|--html|--export|--space|--resume|--config-out|--hostfile|--host-discovery-script|--config-file|--plan|--rsh-agent|--ssh-identity-file|-i|--ssh-program|--output-filename|--json-report|--autotune-log-file|--autotune-memory|--timeline-directory|--timeline-filename|--mpirun) compopt -o default; return ;;
        --forget|--budget|--trials|--failures|--num-proc|-n|--hosts|-H|--fusion-threshold|--cycle-time|--cache-capacity|--wake-delay|--small-message|--spin-time|--tree-radix|--shm-chunk|--shm-ring|--arena-size|--slots-per-host|--ranks-per-host|--discovery-timeout|--ssh-port|-p|--fanout|--network-interfaces|--env-allow|--env-deny|--min-np|--max-np|--spares|--elastic-timeout|--rejoin-timeout|--term-grace|--reset-limit|--slot-restarts|--blacklist-cooldown-range|--start-timeout|--timeout|--failure-grace|--grace|--max-restarts|--restart-on|--heartbeat-timeout|--release-timeout|--prefix|--output-ranks|--autotune-warmup-samples|--autotune-steps-per-sample|--autotune-bayes-opt-max-samples|--autotune-watch-time|--autotune-gaussian-process-noise|--timeline-memory|--timeline-seconds|--timeline-limit|--stall-warning-time|--stall-shutdown-time|--gpu-driver|--gpu-nccl|--gloo-iface|--gloo-timeout|--num-nccl-streams|--thread-affinity|--mpi-args|--binding-args) return ;;
      esac
      case $word in
        -*) COMPREPLY=($(compgen -W '--help --version --json --log --simulate --html --list --forget --export --budget --online --restart --trials --failures --space --wall-time --whole-runs --resume --config-out --dry-run --num-proc --hosts --hostfile --host-discovery-script --config-file --horovod --plan --mpi --jsrun --fusion-threshold --group-fusion --no-group-fusion --cycle-time --cache-capacity --wake-delay --small-message --spin-time --deterministic --no-deterministic --hierarchical-allreduce --no-hierarchical-allreduce --hierarchical-allgather --no-hierarchical-allgather --torus-allreduce --no-torus-allreduce --wire-dtype --wire-error-feedback --no-wire-error-feedback --tree-radix --shm-chunk --shm-ring --arena-size --slots-per-host --ranks-per-host --map-by --bind-to --gpus --discovery-timeout --starter --rsh-agent --ssh-port --ssh-identity-file --ssh-program --fanout --network-interfaces --env-allow --env-deny --min-np --max-np --spares --elastic-timeout --rejoin-timeout --term-grace --reset-limit --slot-restarts --blacklist-cooldown-range --start-timeout --timeout --failure-grace --grace --signal --max-restarts --restart-on --heartbeat-timeout --release-timeout --tag --prefix --prefix-timestamp --no-prefix-timestamp --output-ranks --fold --output-filename --stdin --json-report --verbose --no-verbose --log-level --log-timestamp --no-log-timestamp --autotune --no-autotune --autotune-log-file --autotune-warmup-samples --autotune-steps-per-sample --autotune-bayes-opt-max-samples --autotune-memory --autotune-watch-time --autotune-gaussian-process-noise --timeline-recorder --no-timeline-recorder --timeline-memory --timeline-seconds --timeline-directory --timeline-filename --timeline-mark-cycles --no-timeline-mark-cycles --timeline-all-ranks --no-timeline-all-ranks --timeline-nvtx --no-timeline-nvtx --timeline-limit --stall-check --no-stall-check --stall-warning-time --stall-shutdown-time --cpu-operations --gpu-operations --gpu-driver --torch-backend --gpu-nccl --gpu-async-completion --no-gpu-async-completion --encrypt --no-encrypt --gloo-iface --gloo-timeout --mpi-threads-disable --no-mpi-threads-disable --num-nccl-streams --thread-affinity --mpirun --mpi-args --binding-args --tcp --no-tcp' -- "$word")) ;;
        *) COMPREPLY=($(compgen -c -- "$word")) ;;
      esac
      ;;
  esac
}

# horovodrun is horo run.
_horovodrun() {
  local COMP_LINE="horo run${COMP_LINE#"${COMP_WORDS[0]}"}"
  local COMP_POINT=${#COMP_LINE} COMP_CWORD=$((COMP_CWORD + 1))
  local COMP_WORDS=(horo run "${COMP_WORDS[@]:1}")
  _horo
}

complete -F _horo horo
complete -F _horovodrun horovodrun
