#!/bin/bash
# No complaint of shellcheck about any shell script, completions included.
set -euo pipefail
# shellcheck source=tests/lint/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need shellcheck

mapfile -t files < <(
  {
    grep -rlIE '^#!(/usr)?/bin/(env )?(ba)?sh' .ci common hook ctl nri tests packaging
    grep -rlI '^# shellcheck shell=' tests packaging
  } | LC_ALL=C sort -u
)
shellcheck --external-sources "${files[@]}"
echo "${#files[@]} scripts are clean"
