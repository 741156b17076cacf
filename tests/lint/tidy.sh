#!/bin/bash
# clang-tidy finds nothing in the product's sources, and every NOLINT says why.
# usage: tidy.sh [--all | file pattern]
# Without an argument: in what the last twenty commits or the working tree have changed, and in all where there is no such
# history. --all: in all of it, as CI does; then the sources of a library are read ten at a time (podqos_unite), so that
# the headers, which take most of the time, are read once for these ten.
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

what=${1:-}
unity=OFF
checks=()
# The pattern of the sources to read; a header is read with the source of its name.
if [[ -n $what && $what != --all ]]; then
  pattern=$what
elif [[ -z $what ]] && base=$(git rev-parse --verify --quiet HEAD~20); then
  changed=$(git diff --name-only --diff-filter=d "$base" -- common hook ctl nri |
    sed -nE 's/\.(cpp|h)$/.cpp/p' | LC_ALL=C sort -u | paste -sd'|')
  pattern="$PWD/(${changed//./\\.})\$"
else
  unity=ON
  # Such a group of sources includes them. The other one searches all of a group for each parameter of a function in the
  # headers of libraries, which takes half of the time; the run over what has changed has it.
  checks=('-checks=-bugprone-suspicious-include,-performance-unnecessary-value-param')
  pattern="$PWD/((common|hook|ctl|nri)/.*\.cpp|build/tidy/(common|hook|ctl|nri)/(?!.*-unfiltered).*/Unity/.*)\$"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# All that is compiled in advance would be searched with each source.
cmake --preset tidy -DPODQOS_UNITY=$unity -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >"$log" 2>&1 || {
  cat "$log"
  exit 1
}
# What is generated must be there before it is read.
cmake --build --preset tidy --target podqos_seccomp_header >"$log" 2>&1 || {
  cat "$log"
  exit 1
}
# The analyzer's deep mode takes three quarters of the time.
shallow=(-extra-arg=-Xclang -extra-arg=-analyzer-config -extra-arg=-Xclang -extra-arg=mode=shallow)
if ! run-clang-tidy-19 -quiet -j 2 "${shallow[@]}" "${checks[@]}" -p build/tidy "$pattern" >"$log" 2>&1; then
  grep -vE '^(clang-tidy-19|[0-9]+ warnings? generated|Suppressed|Use -header-filter)' "$log"
  exit 1
fi
echo "clang-tidy finds nothing"
