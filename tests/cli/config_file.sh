#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An error in a config file is reported with its line and column.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

file=$scratch/job.yaml

# refused_file MESSAGE TEXT: a run with a config file of TEXT is refused with MESSAGE.
refused_file() {
  printf '%b' "$2" >"$file"
  refused "$1" horo run -np 1 --config-file "$file" true
}

refused "config file '$scratch/none': No such file or directory" horo run -np 1 --config-file "$scratch/none" true
HORO_CONFIG_FILE=$scratch/none refused "config file '$scratch/none'" horo run -np 1 true
refused "config file '$scratch': Is a directory" horo run -np 1 --config-file "$scratch" true
if [ "$(id -u)" -ne 0 ]; then
  touch "$file"
  chmod 000 "$file"
  refused "config file '$file': Permission denied" horo run -np 1 --config-file "$file" true
  chmod 600 "$file"
fi

refused_file "$file:2:3: unknown key 'fusion.treshold'; did you mean 'fusion.threshold'?" 'fusion:\n  treshold: 1\n'
refused_file "fusion.threshold: '2GiB' (config $file:2:14) must be a size" 'fusion:\n  threshold: 2GiB\n'
refused_file "$file:3:3: key 'shm.ring' is given twice" 'shm:\n  ring: 4\n  ring: 8\n'
refused_file "$file:1:8: key 'grace' must have a single value" 'grace: [1, 2]\n'
refused_file "$file:1:1: must hold sections with keys and values" '- a\n- b\n'
refused_file "$file:2:1: text follows the end of the first document, as after '---'; a config file has one document" 'grace: 1s\n---\nverbose: true\n'
refused_file "$file:1:12: text follows the end of the first document" '{grace: 1s}, verbose'
refused_file "$file:3:2: " 'a:\n  b: 1\n c: 2\n'
refused_file "controller: 'x' (config $file:1:1) must be gloo or mpi" 'controller: x\n'

: >"$file"
try horo run --config-file "$file" --explain-config
expect "exit code with an empty file" "$code" 0
