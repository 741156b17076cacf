#!/bin/bash
# The documents become a site without a warning of mkdocs, and what mkdocs does not look at holds as well: docs.py.
set -euo pipefail
# shellcheck source=tests/lint/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
python3 tests/lint/docs.py
need mkdocs

site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
if ! mkdocs build --strict --site-dir "$site/html" >"$site/log" 2>&1; then
  cat "$site/log"
  exit 1
fi
echo "the site is whole"
