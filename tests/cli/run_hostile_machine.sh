#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small machines and broken installations: collectives work, or the error says what to do.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

probe=$HORO_BIN/../tests/horo_probe
all_fine="fine
fine"

try timeout 60 horo run -np 2 --tag off "$probe"
expect "exit code" "$code" 0
expect "output" "$out" "$all_fine"

try timeout 60 horo run -np 2 --tag off "$probe" fork
expect "exit code of ranks that fork" "$code" 0

try timeout 60 horo run -np 1 --tag off "$probe" "too much"
expect_in "output" "$out" "resource_exhausted: 1125899906842624 bytes of shared memory exceed this rank's arena"
expect_in "output" "$out" "HORO_ARENA_SIZE"

# The library has another version than the launcher.
try timeout 60 horo run -np 1 --tag off env HORO_LAUNCHER_VERSION=9999 "$probe"
expect "exit code" "$code" 27
expect_in "error" "$err" "version_mismatch: the launcher has version code 9999, this libhoro is"

# A wrapper closes descriptors, as Python's subprocess does.
try timeout 60 horo run -np 2 --tag off python3 -c 'import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))' "$probe"
expect "exit code behind a wrapper" "$code" 0
expect "output behind a wrapper" "$out" "$all_fine"

# The limit of open descriptors is low.
try timeout 60 bash -c 'ulimit -n 64; exec horo run -np 2 --tag off "$1"' - "$probe"
expect "exit code with 64 descriptors" "$code" 0
expect "output with 64 descriptors" "$out" "$all_fine"

# The limit of file sizes is low: one rank has the reason, and the report names it and not a rank that waited for it.
for ((i = 0; i < 5; i++)); do
  try timeout 60 horo run -np 4 --tag off bash -c 'ulimit -f 1000; exec "$1"' - "$probe"
  expect "exit code with small files" "$code" 17
  expect_in "the report" "$err" "failed first: exit code 17"
  expect_in "the error" "$err" "raise ulimit -f to"
done

# /dev/shm is full or tiny. Horo keeps nothing there.
if unshare -m true 2>/dev/null; then
  try timeout 60 unshare -m bash -c 'mount -t tmpfs -o size=64k tmpfs /dev/shm && head -c 64k /dev/zero >/dev/shm/full; exec horo run -np 2 --tag off "$1"' - "$probe"
  expect "exit code with a full /dev/shm" "$code" 0
  expect "output with a full /dev/shm" "$out" "$all_fine"
fi

# The agent keeps the ranks' descriptor numbers free from its start on, whatever it opens to reach other hosts.
if command -v python3 >/dev/null; then
  python3 - "$HORO_BIN/horo-agent" <<'PY' || fail "an agent may give the ranks' descriptors to a connection"
import os, subprocess, sys
agent = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
agent.stdout.read(4)  # The agent has started as the child of its guard.
children = open("/proc/%d/task/%d/children" % (agent.pid, agent.pid)).read().split()
opened = [{fd: os.readlink("/proc/%s/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%s/fd" % pid)} for pid in children]
loops = [fds for fds in opened if "anon_inode:[eventpoll]" in fds.values()]
agent.stdin.close()
agent.wait(timeout=30)
assert len(loops) == 1 and loops[0].get("56") == loops[0].get("57") == "/dev/null", opened
PY
fi
