# shellcheck shell=bash
# Sourced by the lint scripts: goes to the project's root, lists its sources.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

# need TOOL: 77 tells ctest that the test was skipped.
need() {
  if ! command -v "$1" >/dev/null; then
    echo "skipped: $1 is not installed"
    exit 77
  fi
}

# cpp_sources DIRECTORY...: C++ files, one a line.
cpp_sources() {
  find "$@" -type f \( -name '*.cpp' -o -name '*.h' \) | LC_ALL=C sort
}
