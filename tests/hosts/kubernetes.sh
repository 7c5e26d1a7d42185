#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Agents are started by a program with the interface of rsh: that of the Kubernetes MPI operator, whose kubectl is a stand-in
# (tests/standins), and another program.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 2
export HOSTS_ON=$HORO_SOURCE/tests/hosts/hosts.sh
export KUBECTL_PODS="pi-worker-0=h1 pi-worker-1=h2"
mv /run/home/.ssh/id_ed25519 "$scratch/away"
mkdir "$scratch/kube" "$scratch/mpi"
cp "$HORO_SOURCE/tests/standins/kubectl" "$scratch/kube/"
printf 'pi-worker-0 slots=2\npi-worker-1 slots=1\n' >"$scratch/mpi/hostfile"
# As the operator writes it.
cat >"$scratch/mpi/kubexec.sh" <<SCRIPT
#!/bin/sh
set -x
POD_NAME=\$1
shift
$scratch/kube/kubectl exec \${POD_NAME} --container worker -- /bin/sh -c "\$*"
SCRIPT
chmod +x "$scratch/mpi/kubexec.sh"

export OMPI_MCA_plm_rsh_agent=$scratch/mpi/kubexec.sh
try timeout 60 horo run -hostfile "$scratch/mpi/hostfile" --dry-run true
expect "exit code of the plan ($err)" "$code" 0
expect_in "the plan" "$out" "starter    rsh agent"
expect_in "the plan" "$out" \
  "; by $scratch/kube/kubectl exec -i (OMPI_MCA_plm_rsh_agent, by its kubectl with -i, because agents need standard input)"
try timeout 60 horo run -hostfile "$scratch/mpi/hostfile" --tag off \
  sh -c 'echo "$RANK $(hostname) $HORO_HOSTNAME $MASTER_ADDR"'
expect "exit code ($err)" "$code" 0
expect "ranks" "$(sort <<<"$out")" "0 h1 pi-worker-0 10.83.0.1
1 h1 pi-worker-0 10.83.0.1
2 h2 pi-worker-1 10.83.0.1"
nothing_left h1 h2
try timeout 60 horo run -hostfile "$scratch/mpi/hostfile" sh -c '[ "$RANK" = 2 ] && exit 6; sleep 1000'
expect "exit code" "$code" 6
expect_in "the report" "$err" "rank 2 on pi-worker-1 failed first: exit code 6"
nothing_left h1 h2
: >"$scratch/out"
horo run -hostfile "$scratch/mpi/hostfile" --tag off sh -c 'echo here; sleep 1000' >"$scratch/out" 2>"$scratch/err" &
eventually "three ranks" '[ "$(grep -c here "$scratch/out")" = 3 ]'
kill -KILL $!
wait $!
nothing_left h1 h2
KUBECTL_PODS="pi-worker-0=h1" try timeout 60 horo run -hostfile "$scratch/mpi/hostfile" true
expect "exit code without a pod" "$code" 125
expect_in "the report" "$err" 'host pi-worker-1 cannot be used: '
expect_in "the report" "$err" 'pods "pi-worker-1" not found'
nothing_left h1

# An elastic job follows the operator's files, which Kubernetes replaces all at once: `..data` is a link to a folder of the
# mounted ConfigMap, and another folder takes its place by a rename.
# shellcheck source=tests/elastic/elastic_lib.sh
. "$HORO_SOURCE/tests/elastic/elastic_lib.sh"
TRAINEE=$ELASTIC_TRAINEE
volume=$scratch/volume
mkdir "$volume"
# publish POD:SLOTS...: mounts these running workers, as the operator's host file and its discover_hosts.sh.
publish() {
  local next
  next=$(mktemp -d "$volume/..XXXXXX")
  printf '%s\n' "$@" | sed 's/:/ slots=/' >"$next/hostfile"
  { echo '#!/bin/sh'; printf 'echo %s\n' "$@"; } >"$next/discover_hosts.sh"
  chmod +x "$next/discover_hosts.sh"
  ln -s "${next##*/}" "$volume/..data_tmp"
  mv -T "$volume/..data_tmp" "$volume/..data"
}
ln -s ..data/hostfile "$volume/hostfile"
ln -s ..data/discover_hosts.sh "$volume/discover_hosts.sh"
for how in "--hostfile $volume/hostfile" "--host-discovery-script $volume/discover_hosts.sh"; do
  publish pi-worker-0:1
  # shellcheck disable=SC2086 # words
  begin --min-np 1 $how
  until_out 'generation 1, rank 0 of 1'
  publish pi-worker-0:1 pi-worker-1:1
  until_out 'worker 1: generation 2, rank 1 of 2'
  publish pi-worker-1:1
  until_out 'worker 1: generation 3, rank 0 of 1'
  until_out 'worker 0: removed$'
  touch "$folder/stop"
  finish
  expect "exit code with $how ($err)" "$code" 0
  expect "losses with $how" "$(grep -c 'killed by' <<<"$err")" 0
  nothing_left h1 h2
done

# The path of the agent is passed as one word, whatever characters it contains, by the operator's program and by another one.
odd="$scratch/it's \"here\" \$HOME"
mkdir "$odd"
cp "$HORO_BIN/horo-agent" "$odd/horo-agent"
export HORO_AGENT_PATH=$odd/horo-agent
try timeout 60 horo run -hostfile "$scratch/mpi/hostfile" -np 3 --tag off hostname
expect "hosts ($err)" "$(sort <<<"$out")" "h1
h1
h2"
unset OMPI_MCA_plm_rsh_agent
printf '#!/bin/bash\nhost=$1\nshift\nexec bash "$HOSTS_ON" on "$host" sh -c "$*"\n' >"$scratch/my agent"
chmod +x "$scratch/my agent"
try timeout 60 horo run -H h1:1,h2:1 --rsh-agent "$scratch/my agent" --tag off hostname
expect "hosts ($err)" "$(sort <<<"$out")" "h1
h2"
try timeout 60 horo run -H h1:1 --rsh-agent "$scratch/my agent" --dry-run true
expect_in "the plan" "$out" "; by $scratch/my agent (--rsh-agent)"
unset HORO_AGENT_PATH
nothing_left h1 h2

# A program that does not pass standard input on is reported with its own error.
printf '#!/bin/sh\necho no way to "$1" >&2\nexit 9\n' >"$scratch/broken"
chmod +x "$scratch/broken"
try timeout 60 horo run -H h1:1 --rsh-agent "$scratch/broken" true
expect "exit code" "$code" 125
expect_in "the report" "$err" "broken to host 'h1' ended with exit code 9: no way to h1"
refused "--rsh-agent: command '$scratch/nowhere' does not exist" horo run -H h1:1 --rsh-agent "$scratch/nowhere" true
refused "--rsh-agent and --starter ssh each say" horo run -H h1:1 --rsh-agent "$scratch/broken" --starter ssh true
exit 0
