#!/bin/bash
# Every C++ file is as clang-format leaves it.
set -euo pipefail
# shellcheck source=tests/lint/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need clang-format-19

mapfile -t files < <(cpp_sources common hook ctl nri tests)
clang-format-19 --dry-run -Werror "${files[@]}"
echo "${#files[@]} files are formatted"
