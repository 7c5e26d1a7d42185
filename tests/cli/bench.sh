#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the scripts of bench/ with tiny sizes: they measure the contenders that are installed, name those that are missing,
# and write complete rows. This test does not judge any figure.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

bench=$HORO_SOURCE/bench
HORO_BUILD=$(dirname "$HORO_BIN")
export HORO_BUILD
has() { [ -x "$HORO_BIN/$1" ]; }

# rows FILE CODE: the Python expression CODE is true for the list `rows` in FILE.
rows() {
  python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))
exec(sys.argv[2])' "$@" || fail "the rows in $1 do not meet the condition: $(cat "$1")"
}

who=limit
has bench_gloo && who+=,gloo
has bench_openmpi && command -v mpirun.openmpi >/dev/null && who+=,openmpi
has bench_mpich && command -v mpiexec.hydra >/dev/null && who+=,mpich
ours=0
if has horo && has horo-run && has bench_horo; then
  who+=,horo-c,horo-c-alloc
  ours=1
fi

# measured CONTENDERS CASES: runs these contenders and checks the rows.
measured() {
  try "$bench/allreduce" --np 2 --who "$1" --cases "$2" --sizes 4,8192 --rounds 2 --seconds 0.01 \
    --json "$scratch/sums.json"
  expect "exit code of --who $1" "$code" 0
  rows "$scratch/sums.json" "
who, cases = '$1'.split(','), '$2'.split(',')
wanted = [(case, size) for case, size in (('sizes', 4), ('sizes', 8192), ('tiny', 1024000)) if case in cases]
assert [(r['case'], r['bytes'], r['who']) for r in rows] == [(*case, name) for case in wanted for name in who], rows
for r in rows:
    assert r['ranks'] == 2 and 0 < r['min_us'] <= r['median_us'] and r['min_us'] <= r['p95_us'], r
    assert r['limit_ratio_low'] <= r['limit_ratio'] <= r['limit_ratio_high'] and len(r['rounds_us']) == 2, r
    assert r['busbw_gbs'] >= 0 and (not r['who'].startswith('horo') or r['entries_per_step'] > 0), r
assert all(r['limit_ratio'] == 1 for r in rows if r['who'] == 'limit')
"
}

measured "$who" sizes
# On a machine with few cores, a peer may need seconds for a thousand small sums.
if [ $ours -eq 1 ]; then measured limit,horo-c,horo-c-alloc tiny; else measured limit tiny; fi
expect_in "table" "$out" "tiny: 1000 KiB in 1000 tensors"

# The smallest training, with Horo's contenders only. HORO_BENCH_PYTHON is a Python that has torch.
if [ $ours -eq 1 ] && python3 -c 'import torch' 2>/dev/null; then
  HORO_BENCH_PYTHON=$(command -v python3) try "$bench/training" --who limit,horo --cases import,hook,optimizer --rounds 1 \
    --seconds 0.05 --json "$scratch/training.json"
  expect "exit code of training" "$code" 0
  rows "$scratch/training.json" "
assert [(r['case'], r['who']) for r in rows] == [
    ('import', 'horo'), ('hook', 'horo'), ('optimizer', 'limit'), ('optimizer', 'horo')], rows
assert all(r['median_us'] > 0 for r in rows) and rows[-1]['limit_ratio'] > 0, rows
"
fi

collectives=
[ $ours -eq 1 ] && has bench_collectives_horo && collectives=horo-c,horo-c-alloc
has bench_collectives_openmpi && command -v mpirun.openmpi >/dev/null && collectives+=${collectives:+,}openmpi
if [ -n "$collectives" ]; then
  try "$bench/collectives" --np 2 --who "$collectives" --sizes 8,16384 --rounds 2 --seconds 0.01 \
    --json "$scratch/collectives.json"
  expect "exit code of collectives" "$code" 0
  rows "$scratch/collectives.json" "
who = '$collectives'.split(',')
kinds = ('allgather', 'alltoall', 'reducescatter', 'broadcast')
wanted = [(kind, size, name) for kind in kinds for size in (8, 16384) for name in who]
assert [(r['case'], r['bytes'], r['who']) for r in rows] == wanted, rows
for r in rows:
    assert 0 < r['min_us'] <= r['median_us'] and len(r['rounds_us']) == 2, r
    assert 'openmpi' not in who or r['openmpi_ratio_low'] <= r['openmpi_ratio'] <= r['openmpi_ratio_high'], r
"
  expect_in "table of collectives" "$out" "reducescatter: 16 KiB"
  mkdir -p "$scratch/results"
  cp "$scratch/collectives.json" "$scratch/results/collectives-2.json"
  echo '{"cpu": "c", "cores": 2, "memory_gib": 1, "system": "s", "kernel": "k", "commit": "c", "date": "d"}' \
    >"$scratch/results/machine.json"
  try "$bench/format_results" "$scratch/results"
  expect "exit code of format_results" "$code" 0
  expect_in "results" "$out" "## Other collectives over 2 ranks"
  expect_in "results" "$out" "| reducescatter, ${collectives%%,*} |"
fi
refused "size 12 cannot be divided among 2 ranks" "$bench/collectives" --sizes 12

# A contender that is not installed is listed as missing; a contender with a wrong result fails the bench.
mkdir -p "$scratch/bare/bin"
try "$bench/allreduce" --build "$scratch/bare" --who limit,gloo,horo-c --rounds 1
expect "exit code without programs" "$code" 0
expect_in "table without programs" "$out" "not measured: gloo: bench_gloo is not built: cmake --build $scratch/bare"
expect_in "table without programs" "$out" "not measured: horo-c: horo is not built"
printf '#!/bin/sh\necho "case sizes: a sum is wrong" >&2\nexit 1\n' >"$scratch/bare/bin/bench_limit"
chmod +x "$scratch/bare/bin/bench_limit"
try "$bench/allreduce" --build "$scratch/bare" --who limit --rounds 3
expect "exit code with a wrong sum" "$code" 1
expect_in "table with a wrong sum" "$out" "FAILED: limit: exit code 1: case sizes: a sum is wrong"

refused "unknown 'mpi'; known: limit,horo-c" "$bench/allreduce" --who mpi
refused "'6' is not a whole number from 4 up that are multiples of 4" "$bench/allreduce" --sizes 6
refused "'0' is not a whole number from 1 up" "$bench/launch" --np 0

launchers=shell
[ $ours -eq 1 ] && launchers+=,horo
try "$bench/launch" --np 2 --who $launchers --rounds 2 --json "$scratch/launch.json"
expect "exit code of launch" "$code" 0
rows "$scratch/launch.json" "
assert sorted(r['who'] for r in rows) == sorted('$launchers'.split(','))
for r in rows:
    assert r['np'] == 2 and 0 < r['min_ms'] <= r['wall_ms'] <= r['max_ms'] and r['peak_rss_mib'] > 0, r
    assert (r['runs'], r['hung'], r['failed']) == (2, 0, 0), r
    assert 0 < r['shell_ratio_low'] <= r['shell_ratio'] <= r['shell_ratio_high'], r
    assert r['who'] != 'shell' or r['shell_ratio'] == 1, r
"

if [ $ours -eq 1 ]; then
  try "$bench/stop" --np 2 --who horo --rounds 1 --grace 100ms --json "$scratch/stop.json"
  expect "exit code of stop" "$code" 0
  rows "$scratch/stop.json" "
assert [(r['mode'], r['runs'], r['never']) for r in rows] == [('obey', 1, 0), ('deaf', 1, 0)]
assert all(r['stop_ms'] > 0 for r in rows)
"
  try "$bench/idle" --who horo-c --seconds 0.5 --json "$scratch/idle.json"
  expect "exit code of idle" "$code" 0
  rows "$scratch/idle.json" "
[r] = rows
assert r['ticks'] >= 0 and r['processes'] >= 4 and r['threads'] >= r['processes'], r
"
fi

# The page of results is written from whichever parts exist.
echo '{"cpu": "c", "cores": 2, "memory_gib": 1, "system": "s", "kernel": "k", "commit": "x", "date": "d"}' \
  >"$scratch/machine.json"
mv "$scratch/sums.json" "$scratch/allreduce-2.json"
try "$bench/format_results" "$scratch"
expect "exit code of format_results" "$code" 0
expect_in "page" "$out" "- Machine: c, 2 cores"
expect_in "page" "$out" "### 1,000 tensors of 1 KiB (1000 KiB)"
expect_in "page" "$out" "## Launching /bin/true"
[ ! -e "$scratch/training.json" ] || expect_in "page" "$out" "### From a gradient to its submission, per gradient"

cd "$bench" && try python3 -B -c '
from benchlib import figures, workloads
resnet = workloads.resnet50()
assert (len(resnet.counts), sum(resnet.counts)) == (161, 25557032)
assert resnet.counts[:2] == (1000, 2048000) and resnet.counts[-1] == 9408
groups = workloads.buckets(resnet.counts)
assert [i for group in groups for i in group] == list(range(161))
assert [4 * sum(resnet.counts[i] for i in group) for group in groups] == [8196000, 31502336, 26255360, 26550272, 9724160]
made = [{"case": "tiny", "bytes": 8, "median_us": m, "min_us": 1, "p95_us": 9, "others_share": 0.1} for m in (4, 2, 3)]
row = figures.aggregate("x", 4, made)
assert (row["median_us"], row["min_us"], row["p95_us"], row["rounds_us"]) == (3, 1, 9, [4, 2, 3]), row
assert row["busbw_gbs"] == round(1.5 * 8 / 3 / 1e3, 3), row
limit = dict(row, who="limit", rounds_us=[2, 2, 1])
figures.add_limit_ratios([limit, row])
assert (row["limit_ratio_low"], row["limit_ratio"], row["limit_ratio_high"]) == (1.0, 2.0, 3.0), row
'
expect "exit code of the arithmetic" "$code" 0
