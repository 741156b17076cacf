#!/bin/bash
# codespell finds no misspelt word outside the test data, which are others' words.
set -euo pipefail
# shellcheck source=tests/lint/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need codespell

shopt -s nullglob
# kNo is an enumerator.
codespell --ignore-words-list=kno --skip='*/data/*,*.jsonl,*.pyc' \
  .ci cmake common hook ctl docs packaging tests ./*.md CMakeLists.txt
echo "no misspelt words"
