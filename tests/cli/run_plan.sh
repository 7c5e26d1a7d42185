#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A plan file is written, compared, edited and run again.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
plan=$scratch/plan.json

printf '#!/bin/sh\necho "rank $HORO_RANK of $HORO_SIZE, local $HORO_LOCAL_RANK, $1"\n' >"$scratch/train"
chmod +x "$scratch/train"
cd "$scratch" || exit
try horo run -np 4 -H 'n[1-2]:2' --map-by host --bind-to numa --plan-out "$plan" --dry-run ./train --lr
expect "exit code" "$code" 0
expect "plan" "$(cat "$plan")" '{
  "horo_plan": 1,
  "command": [
    "./train",
    "--lr"
  ],
  "directory": "'"$scratch"'",
  "bind_to": "numa",
  "gpus": "off",
  "hosts": [
    {
      "name": "n1",
      "ranks": "0,2"
    },
    {
      "name": "n2",
      "ranks": "1,3"
    }
  ]
}'

# Reading a plan gives the same plan, from any folder, and writing it gives the same file.
cd / || exit
try horo run --plan "$plan" --plan-out "$scratch/again.json" --dry-run
expect "exit code" "$code" 0
cmp "$plan" "$scratch/again.json" || fail "the plan changed"
expect_in "plan" "$out" "hosts      plan file '$plan': it was given"
expect_in "plan" "$out" "host       n2: 2 ranks, 1,3; binding numa, as its agent finds it"
expect_in "plan" "$out" "     3  n2                         1 of 2       1 of 2"

# Two plans of the same job are the same file.
cd "$scratch" || exit
horo run -np 4 -H 'n[1-2]:2' --map-by host --bind-to numa --plan-out "$scratch/second.json" --dry-run ./train --lr >/dev/null
cmp "$plan" "$scratch/second.json" || fail "plans of the same job differ"
cd / || exit

# An edited plan runs: the ranks run on the hosts in the file, with its command or another one, and a flag has priority over
# its binding.
python3 - "$plan" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1]))
plan["hosts"] = [{"name": "localhost", "ranks": "0-2"}]
json.dump(plan, open(sys.argv[1], "w"))
PY
try horo run --plan "$plan" --tag off
expect "exit code" "$code" 0
expect "what the ranks say" "$(sort <<<"$out")" "rank 0 of 3, local 0, --lr
rank 1 of 3, local 1, --lr
rank 2 of 3, local 2, --lr"
try horo run --plan "$plan" --bind-to none --tag off sh -c 'echo "other $HORO_RANK"'
expect "what the ranks say" "$(sort <<<"$out")" "other 0
other 1
other 2"

refused "excludes" horo run --plan "$plan" -np 2 true
refused "excludes" horo run --plan "$plan" -H a true
refused "--map-by has no effect on a saved plan" horo run --plan "$plan" --map-by host true
refused "plan file '$scratch/none': opening it" horo run --plan "$scratch/none" true
sed -i 's/"0-2"/"0-1,3"/' "$plan"
refused "$plan: rank 3 on host 'localhost' is past the last of 3 ranks" horo run --plan "$plan"
sed -i 's/"0-1,3"/"0"/; s/numa/socket/' "$plan"
refused "$plan: bind.to: 'socket'" horo run --plan "$plan"
sed -i 's/socket/none/; s/"localhost"/"elsewhere.invalid"/' "$plan"
try timeout 60 horo run --plan "$plan" --start-timeout 20
[ "$code" != 0 ] || fail "a plan with a host that does not exist was run"
expect_in "error" "$err" "elsewhere.invalid"
refused "plan file '/nonexistent/plan'" horo run -np 1 --plan-out /nonexistent/plan true
mkfifo "$scratch/pipe"
refused "the plan file '$scratch/pipe' is a pipe that nothing reads; start its reader first" timeout 60 horo run -np 1 --plan-out "$scratch/pipe" true
