#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real Slurm whose nodes are the hosts of a test. Comes after lib.sh.
# shellcheck disable=SC2016,SC2154 # conditions of eventually are expanded later; lib.sh has set scratch
PATH=$PATH:/usr/sbin:/sbin
for tool in slurmctld:slurm-wlm munged:munge; do
  command -v "${tool%:*}" >/dev/null || skip "no ${tool%:*} here; scripts/packages --install test brings it (${tool#*:})"
done
slurm=$HORO_SOURCE/tests/standalone/slurm_here.sh

# start_slurm NODES: starts it on the hosts h1 to hNODES, until the test ends. SLURM_HERE_* have further settings.
start_slurm() {
  export SLURM_CONF=$scratch/slurm/slurm.conf
  trap 'bash "$slurm" down "$scratch/slurm"; rm -rf "$scratch"' EXIT
  SLURM_HERE_ON=$HORO_SOURCE/tests/hosts/hosts.sh bash "$slurm" up "$scratch/slurm" "$1" || fail "Slurm did not start"
  # No ssh login is possible.
  mv /run/home/.ssh/id_ed25519 "$scratch/away"
}

# ours HOST: the processes of the host except Slurm's own.
ours() { processes "$1" | grep -v -e slurmd -e slurmstepd; }
# nothing_ours HOST...: these hosts have soon no processes except Slurm's own.
nothing_ours() { for host in "$@"; do eventually "the end of all on $host: $(ours "$host")" '[ -z "$(ours "$host")" ]'; done; }
