#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every option of horovodrun is accepted. horovodrun_flags.txt lists them with their effect.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
unset GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME

echo 'localhost slots=2' >"$scratch/hosts"
: >"$scratch/empty.yaml"
printf '#!/bin/sh\necho localhost:2\n' >"$scratch/discover"
printf '#!/bin/sh\necho "mpirun (Open MPI) 5.0.3"\n' >"$scratch/mpirun"
chmod +x "$scratch/discover" "$scratch/mpirun"

rows=0
while IFS='|' read -r words wanted; do
  case $words in '' | '#'*) continue ;; esac
  rows=$((rows + 1))
  read -ra options <<<"${words//\$scratch/$scratch}"
  try horo run "${options[@]}" --dry-run true
  wanted=${wanted# }
  case $wanted in
    ok) expect "exit code of $words" "$code" 0 ;;
    'refused '*) refused "${wanted#refused }" horo run "${options[@]}" --dry-run true ;;
    *)
      expect "exit code of $words" "$code" 0
      for variable in $wanted; do
        if [ "${variable#!}" = "$variable" ]; then
          grep -qxF "  $variable" <<<"$out" || fail "ranks lack '$variable' with '$words'"
        else
          ! grep -q "^  ${variable#!}=" <<<"$out" || fail "ranks have '${variable#!}' with '$words'"
        fi
      done ;;
  esac
done <"${0%/*}/horovodrun_flags.txt"
[ "$rows" -ge 90 ] || fail "only $rows rows were read"

# Options whose effect is not visible in the environment.
try horo run --disable-cache -np 1 -v
expect "the version" "$out" "$(horo --version)"
try horo run -np 1 --output-filename "$scratch/logs" -prefix-timestamp --prefix '{rank}: ' echo word
grep -qE '^[0-9-]+ [0-9:.]+ 0: word$' <<<"$out" || fail "no time in front of the prefix"
expect_in "the file of rank 0" "$(cat "$scratch"/logs/rank.0/stdout)" word
