#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Hosts that cannot be used: the error names each host, the attempt and the remedy, and the other hosts are released.
# shellcheck source=tests/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
on_hosts 3
ssh_home=/run/home/.ssh

# refused_host PART... -- ARGUMENT...: horo run fails with exit code 125, the error contains every PART, and no process is
# left.
refused_host() {
  local parts=() part
  while [ "$1" != -- ]; do
    parts+=("$1")
    shift
  done
  shift
  try timeout 60 horo run "$@" sh -c 'echo started; sleep 1000'
  expect "exit code of $*" "$code" 125
  expect "what ranks of $* wrote" "$out" ""
  for part in "${parts[@]}"; do expect_in "the error of $*" "$err" "$part"; done
  nothing_left h1 h2 h3
}

cp "$ssh_home/known_hosts" "$scratch/known"
grep -v '^h2,' "$scratch/known" >"$ssh_home/known_hosts"
print=$(ssh-keygen -lf /run/horo-hosts/h2.key.pub | cut -d' ' -f2)
refused_host "host h2 cannot be used: " "host key is unknown: ssh-ed25519 $print" \
  "ssh-keyscan -p 22 h2 >> $ssh_home/known_hosts" -- -H h1:1,h2:1
echo "h2 $(cut -d' ' -f1,2 /run/horo-hosts/h1.key.pub)" >>"$ssh_home/known_hosts"
refused_host "host h2 cannot be used: " "its host key differs from the one in $ssh_home/known_hosts" "ssh-keygen -R 'h2'" \
  -- -H h1:1,h2:1
refused_host "host h2 cannot be used: " "Host key verification failed" -- -H h1:1,h2:1 --ssh-program ssh
# The remedy in the error works.
grep -v '^h2 ' "$ssh_home/known_hosts" >"$scratch/without" && cp "$scratch/without" "$ssh_home/known_hosts"
ssh-keyscan -p 22 h2 >>"$ssh_home/known_hosts" 2>/dev/null
try timeout 60 horo run -H h2:1 --tag off hostname
expect "after the advice" "$out$err" h2
cp "$scratch/known" "$ssh_home/known_hosts"

# A server with several keys is asked for the one that the second file of known hosts has.
ssh-keygen -q -t rsa -N '' -f "$scratch/rsa"
sed -e 's/:22$/:2222/' -e "s|^HostKey.*|&\nHostKey $scratch/rsa|" /run/horo-hosts/h1.conf >"$scratch/two_keys.conf"
on h1 "$(command -v sshd)" -f "$scratch/two_keys.conf"
echo "[h1]:2222 $(cut -d' ' -f1,2 "$scratch/rsa.pub")" >"$scratch/second"
printf 'Host h1\n  UserKnownHostsFile %s/first %s/second\n' "$scratch" "$scratch" >"$ssh_home/config"
try timeout 60 horo run -H h1:1 -p 2222 --tag off hostname
expect "with a key of the second file" "$out$err" h1
rm "$ssh_home/config"

printf 'Host h2\n  User nobody-of-that-name\n' >"$ssh_home/config"
refused_host "host h2 cannot be used: " "refuses user 'nobody-of-that-name'" "ssh-copy-id" -- -H h1:1,h2:1
# A key with a passphrase does not lead to a prompt.
ssh-keygen -q -t ed25519 -N secret -f "$scratch/locked"
cat "$scratch/locked.pub" >>"$ssh_home/authorized_keys"
printf 'Host h2\n  User root\n  IdentityFile %s\n' "$scratch/locked" >"$ssh_home/config"
mv "$ssh_home/id_ed25519" "$scratch/id"
refused_host "host h2 cannot be used: " "a key needs a passphrase" "ssh-add" -- -H h2:1
mv "$scratch/id" "$ssh_home/id_ed25519"
rm "$ssh_home/config"

refused_host "host h2 cannot be used: " "h2" "Connection refused" -- -H h2:1 -p 2223
refused_host "host no.such.host.invalid cannot be used: " "no.such.host.invalid" "has no address" -- -H no.such.host.invalid:1

# A host does not answer: the error says which step each host had reached at the timeout.
hosts cut h2
try timeout 60 horo run -H h1:1,h2:1,h3:1 --start-timeout 2 sleep 1000
expect "exit code without an answer" "$code" 124
expect_in "the error without an answer" "$err" \
  "3 of 3 ranks were not started within --start-timeout 2.00 s; host h2: connecting to 10.83.0.2:22"
hosts heal h2
nothing_left h1 h2 h3

# The start can be interrupted before the timeout.
hosts cut h3
horo run -H h1:1,h3:1 sleep 1000 2>"$scratch/err" &
job=$!
eventually "the agent that waits for the other host" '[ -n "$(processes h1)" ]'
kill -TERM "$job"
wait "$job"
expect "exit code of an interrupted start" "$?" 143
hosts heal h3
nothing_left h1 h3

# The remote host has no agent.
mkdir "$scratch/bin"
cp "$HORO_BIN/horo-agent" "$scratch/bin/agent-of-here"
export HORO_AGENT_PATH=$scratch/nowhere/horo-agent
refused_host "host h1 cannot be used: " "there is no $scratch/nowhere/horo-agent there, and no horo-agent in PATH=" -- -H h1:1
refused_host "host h1 cannot be used: " "there is no $scratch/nowhere/horo-agent there, and no horo-agent in PATH=" \
  -- -H h1:1 --ssh-program ssh
# An agent in PATH is used.
mkdir -p /run/local && cp "$HORO_BIN/horo-agent" /run/local/
echo "PATH=/run/local:$PATH" >"$ssh_home/environment"
echo 'export PATH=/run/local:$PATH' >/run/home/.bashrc
try timeout 60 horo run -H h1:1 --tag off hostname
expect "with an agent in PATH" "$out$err" h1
rm /run/home/.bashrc
# Another program has the agent's name.
printf '#!/bin/sh\necho what is this\nexit 3\n' >"$scratch/bin/horo-agent"
chmod +x "$scratch/bin/horo-agent"
export HORO_AGENT_PATH=$scratch/bin/horo-agent
refused_host "host h1 cannot be used: " "ended with exit code 3: what is this" -- -H h1:1
refused_host "host h1 cannot be used: " "ssh to host 'h1' ended with exit code 3: what is this" -- -H h1:1 --ssh-program ssh
# Text that would act on the terminal is not shown as it came.
printf '#!/bin/sh\nprintf "\\033]0;owned\\007\\302\\23331mred\\n" >&2\nexit 3\n' >"$scratch/bin/horo-agent"
refused_host "host h1 cannot be used: " "ended with exit code 3: 31mred" -- -H h1:1
expect "terminal sequences in the error" "$(grep -c "$(printf '\033')" <<<"$err")" 0
unset HORO_AGENT_PATH

# A startup file of the login shell runs another program, which is killed at the end. The user is not root, because sshd passes
# no signals on in sessions of root.
echo 'ann:*:4242:4242::/run/ann:/bin/bash' >>/run/horo-hosts/passwd
mkdir /run/ann
echo 'exec sleep 100' >/run/ann/.bashrc
chmod 711 /run/home $ssh_home
chmod 644 $ssh_home/authorized_keys
try timeout 60 horo run --start-timeout 3 -H ann@h1:1 hostname
expect "exit code behind another program" "$code" 124
expect_in "error behind another program" "$err" "a startup file of the login shell there may run another program"
nothing_left h1
horo run -H ann@h1:1 hostname 2>"$scratch/err" &
job=$!
eventually "the other program" '[ -n "$(processes h1)" ]'
kill -INT "$job"
wait "$job"
expect "exit code of an interrupted start behind another program" "$?" 130
nothing_left h1
# Such a program, and what a forced command prints, ends up in the error with either way of ssh.
echo 'echo no logins today; exit 5' >/run/home/.bashrc
for way in --no-verbose --ssh-program=ssh; do
  refused_host "host h1 cannot be used: " "ended with exit code 5: no logins today" -- -H h1:1 $way
done
rm /run/home/.bashrc

# A program exists only on the remote host, and a directory exists only on this one.
on h1 sh -c 'mkdir /dev/shm/bin; cp /bin/echo /dev/shm/bin/only-there'
try timeout 60 horo run -H h1:1 --tag off /dev/shm/bin/only-there good
expect "a program of the other host" "$out$err" good
mkdir /run/only-here
on h1 mount -t tmpfs tmpfs /run/only-here
mkdir /run/only-here/work
cd /run/only-here/work || fail "no folder"
try timeout 60 horo run -H h1:1 hostname
cd / || fail "no /"
expect_in "the error of a missing directory" "$err" "rank 0 on h1 could not be started: "
expect_in "the error of a missing directory" "$err" "/run/only-here/work"
nothing_left h1
exit 0
