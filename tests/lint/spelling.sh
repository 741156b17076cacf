#!/bin/bash
# codespell finds no misspelt word outside the test data, which are others' words.
set -euo pipefail
# shellcheck source=tests/lint/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need codespell

shopt -s nullglob
# kNo and kOwn are enumerators, "te" a header of HTTP; "sytem" is misspelt on purpose, in a test of the nearest name.
codespell --ignore-words-list=kno,kown,te,sytem --skip='*/data/*,*.jsonl,*.pyc' \
  .ci cmake common hook ctl nri docs packaging tests ./*.md CMakeLists.txt
echo "no misspelt words"
