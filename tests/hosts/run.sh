#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `horo run` over ssh: the ranks' identities, environment and input are right, and no process stays on any host.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 3

cd /var/tmp || fail "no /var/tmp"
try timeout 60 horo run -H h1:2,h2:2,h3:2 --tag off sh -c 'echo "$RANK $LOCAL_RANK $(hostname) $PWD"'
expect "exit code" "$code" 0
expect "ranks" "$(sort <<<"$out")" "0 0 h1 /var/tmp
1 1 h1 /var/tmp
2 0 h2 /var/tmp
3 1 h2 /var/tmp
4 0 h3 /var/tmp
5 1 h3 /var/tmp"
expect "standard error" "$err" ""
nothing_left h1 h2 h3

# This machine is one of the hosts. All ranks get the same address of it, one that the others can reach.
try timeout 60 horo run -H head:1,h1:1,h2:1 --tag off \
  sh -c 'echo "$(hostname) $MASTER_ADDR ${HORO_RENDEZVOUS%:*} $GLOO_SOCKET_IFNAME"'
expect "addresses" "$(sort <<<"$out")" "h1 10.83.0.254 10.83.0.254 eth0
h2 10.83.0.254 10.83.0.254 eth0
head 10.83.0.254 10.83.0.254 br0"
try timeout 60 horo run -H h2:1,h1:1 --tag off sh -c 'echo "$MASTER_ADDR $MASTER_PORT" "$TF_CONFIG"'
expect "how many addresses of rank 0" "$(cut -d' ' -f1,2 <<<"$out" | sort -u | wc -l)" 1
expect_in "address of rank 0" "$out" "10.83.0.2 "
expect_in "addresses of all" "$out" '["10.83.0.2:'

# The environment is passed unchanged, whatever it contains, except for variables that belong to a host.
export ODD=$'two\nlines ( $HOME `x` "\\ ü' EMPTY='' 'PYTHONPATH=/a b:/c' DISPLAY=:7 MINE=1 MINE_TOO=2
try timeout 60 horo run -H h1:1 --tag off --env-deny 'MINE*' env -0
tr '\0' '\1' <"$scratch/out" >"$scratch/environment"
for variable in EMPTY= "PYTHONPATH=/a b:/c" HOME=/run/home USER=root RANK=0; do
  grep -qzxF -- "$variable" <(tr '\1' '\0' <"$scratch/environment") || fail "a rank lacks '$variable'"
done
grep -qz -e '^DISPLAY=' -e '^MINE' <(tr '\1' '\0' <"$scratch/environment") && fail "a rank has what it should not"
try timeout 60 horo run -H h1:1 --tag off sh -c 'printf %s "$ODD"'
expect "a value of several lines" "$out" "$ODD"
try timeout 60 horo run -H h1:1 --tag off --env-allow 'PATH,MINE*' env
expect "what was allowed" "$(grep -c -e '^MINE' <<<"$out") $(grep -c '^PYTHONPATH=' <<<"$out")" "2 0"
unset ODD EMPTY PYTHONPATH DISPLAY MINE MINE_TOO

# Standard input of rank 0, prefixes and files work as on one host.
printf 'one\ntwo\n' >"$scratch/input"
timeout 60 horo run -H h1:1,h2:1 --stdin rank0 --tag off sh -c 'sed "s/^/$RANK /"' <"$scratch/input" >"$scratch/out" 2>&1
expect "standard input" "$(sort "$scratch/out")" "0 one
0 two"
head -c 3000000 /dev/urandom >"$scratch/input"
timeout 60 horo run -H h1:1 --stdin rank0 --tag off cat <"$scratch/input" >"$scratch/out"
cmp "$scratch/input" "$scratch/out" || fail "bytes were changed on the way"
try timeout 60 horo run -H h1:1,h2:1 --prefix '{rank}@{host}: ' --output-filename "$scratch/logs" hostname
expect "prefixes" "$(sort <<<"$out")" "0@h1: h1
1@h2: h2"
expect "files" "$(cat "$scratch"/logs/rank.*/stdout)" "h1
h2"

# The route to each host, and the reason for it.
cat >/run/home/.ssh/config <<CONF
Host far
  HostName h3
  ProxyJump h1
Host other
  HostName h2
  Port 22
  User root
CONF
cat /run/home/.ssh/known_hosts >"$scratch/known"
sed 's/^h2,/other,h2,/' "$scratch/known" >/run/home/.ssh/known_hosts
try timeout 60 horo run -H far:1,other:1 --dry-run hostname
expect_in "the plan" "$(grep "^host  *far: " <<<"$out")" "; by the program ssh (its configuration has proxyjump h1)"
expect_in "the plan" "$(grep "^host  *other: " <<<"$out")" "; by ssh as root to h2, port 22"
try timeout 60 horo run -H far:1,other:1 --tag off hostname
expect "exit code through a jump host" "$code" 0
expect "hosts through a jump host" "$(sort <<<"$out")" "h2
h3"
# A user given with the host has priority over the configuration's user, and is not part of the host name.
printf 'Host *\n  User nobody-of-that-name\n' >/run/home/.ssh/config
printf 'root@h1 slots=1\nroot@h2:1\n' >"$scratch/hostfile"
try timeout 60 horo run -hostfile "$scratch/hostfile" --dry-run true
expect_in "the plan" "$(grep "^host  *h1: " <<<"$out")" "; by ssh as root to h1, port 22"
for way in --no-verbose --ssh-program=ssh; do
  try timeout 60 horo run -H 'root@h[1-2]:1' "$way" --tag off sh -c 'echo "$(hostname) $HORO_HOSTNAME"'
  expect "exit code with users ($way: $err)" "$code" 0
  expect "hosts with users ($way)" "$(sort <<<"$out")" "h1 h1
h2 h2"
done
try timeout 60 horo run -H root@h1:1,h2:1 --dry-run true
expect_in "the plan" "$(grep "^host  *h2: " <<<"$out")" "; by ssh as nobody-of-that-name to h2, port 22"
try timeout 60 horo run -H eva@head:1 true
expect "exit code of another user here" "$code" 2
expect_in "the error" "$err" "host 'head' is this machine, where ranks run as 'root'; leave 'eva@' out"
rm /run/home/.ssh/config
try timeout 60 horo run -H h1:1,h2:1 --ssh-program ssh --tag off sh -c 'echo "$(hostname) ${HORO_RENDEZVOUS%:*}"'
expect "by the program" "$(sort <<<"$out")" "h1 10.83.0.254
h2 10.83.0.254"

# A private key in a named file, and another port.
cp /run/home/.ssh/id_ed25519 "$scratch/key"
mv /run/home/.ssh/id_ed25519 "$scratch/away"
on h1 setsid "$(command -v sshd)" -f /run/horo-hosts/h1.conf -o ListenAddress=10.83.0.1:2222 </dev/null >/dev/null 2>&1
echo "[h1]:2222 $(cut -d' ' -f1,2 /run/horo-hosts/h1.key.pub)" >>/run/home/.ssh/known_hosts
eventually "a second server" '(exec 3<>/dev/tcp/h1/2222) 2>/dev/null'
try timeout 60 horo run -H h1:1 -p 2222 -i "$scratch/key" --tag off hostname
expect "by another port and key" "$out$err" h1
# As with ssh, a host at another port may be known without the port, and an alias stands for host and port.
cp /run/home/.ssh/known_hosts "$scratch/with-port"
key=$(cut -d' ' -f1,2 /run/horo-hosts/h1.key.pub)
echo "h1 $key" >/run/home/.ssh/known_hosts
try timeout 60 horo run -H h1:1 -p 2222 -i "$scratch/key" --tag off hostname
expect "by another port, known without it" "$out$err" h1
: >/run/home/.ssh/known_hosts
echo "[h1]:2222 $key" >/run/home/.ssh/known_hosts2
try timeout 60 horo run -H h1:1 -p 2222 -i "$scratch/key" --tag off hostname
expect "by another port, known by the second file" "$out$err" h1
rm /run/home/.ssh/known_hosts2
echo "other-name $key" >/run/home/.ssh/known_hosts
printf 'Host h1\n  HostKeyAlias other-name\n' >/run/home/.ssh/config
try timeout 60 horo run -H h1:1 -p 2222 -i "$scratch/key" --tag off hostname
expect "by another port, known by an alias" "$out$err" h1
rm /run/home/.ssh/config
echo "[h1]:2222 $(cut -d' ' -f1,2 /run/horo-hosts/h2.key.pub)" >/run/home/.ssh/known_hosts
echo "h1 $key" >>/run/home/.ssh/known_hosts
try timeout 60 horo run -H h1:1 -p 2222 -i "$scratch/key" --tag off hostname
expect "exit code with another key at that port" "$code" 125
expect_in "error with another key at that port" "$err" "its host key differs from the one in"
cp "$scratch/with-port" /run/home/.ssh/known_hosts
# The keys of ssh-agent.
eval "$(ssh-agent)" >/dev/null
ssh-add -q "$scratch/key"
try timeout 60 horo run -H h2:1 --tag off hostname
expect "by an agent's key" "$out$err" h2
kill "$SSH_AGENT_PID"
unset SSH_AUTH_SOCK SSH_AGENT_PID
mv "$scratch/away" /run/home/.ssh/id_ed25519

# A login shell that prints a greeting, and one that is not compatible with the Bourne shell.
echo 'echo "welcome to $(hostname)"; echo more' >/run/home/.bashrc
try timeout 60 horo run -H h1:1 --tag off hostname
expect "behind a greeting" "$out" h1
rm /run/home/.bashrc
nothing_left h1 h2 h3
exit 0
