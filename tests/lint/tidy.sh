#!/bin/bash
# clang-tidy finds nothing in the product's sources, and every NOLINT says why.
# usage: tidy.sh [file pattern]
set -euo pipefail
# shellcheck source=tests/lint/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need run-clang-tidy-19
need clang++-19

# "// NOLINT(check): reason", and nothing vaguer.
if grep -rnE 'NOLINT' --include='*.cpp' --include='*.h' common hook ctl nri tests |
  grep -vE 'NOLINTEND|NOLINT(NEXTLINE|BEGIN)?\([a-z0-9.,* -]+\):? [^ ]'; then
  echo "a NOLINT names its checks and its reason: // NOLINT(check): reason" >&2
  exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset tidy >"$log" 2>&1 || {
  cat "$log"
  exit 1
}
# What is generated must be there before it is read.
cmake --build --preset tidy --target podqos_seccomp_header podqos_nri_messages >"$log" 2>&1 || {
  cat "$log"
  exit 1
}
# The analyzer's deep mode takes three quarters of the time.
shallow=(-extra-arg=-Xclang -extra-arg=-analyzer-config -extra-arg=-Xclang -extra-arg=mode=shallow)
if ! run-clang-tidy-19 -quiet -j 2 "${shallow[@]}" -p build/tidy "${1:-$PWD/(common|hook|ctl|nri)/.*\.cpp$}" >"$log" 2>&1; then
  grep -vE '^(clang-tidy-19|[0-9]+ warnings? generated|Suppressed|Use -header-filter)' "$log"
  exit 1
fi
echo "clang-tidy finds nothing"
