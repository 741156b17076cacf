# shellcheck shell=bash
# What the builds of all packages need of the source tree. Sourced by packaging/deb/build and packaging/rpm/build.

# project_version TREE
project_version() {
  sed -n 's/^project(podqos VERSION \([0-9.]*\) .*/\1/p' "$1/CMakeLists.txt"
}

# copy_tree TREE COPY: what git knows and what it would take in, without what has been built. A tree that git does not know
# has only sources.
copy_tree() {
  local tree=$1 copy=$2 file
  if [[ $(git -C "$tree" rev-parse --show-toplevel 2>/dev/null) == "$(realpath -- "$tree")" ]]; then
    (cd "$tree" && git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
      if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
    done | tar --create --no-recursion --null --files-from=- --file=-)
  else
    tar --create --directory "$tree" --exclude=./build --exclude=./.git --file=- .
  fi | tar --extract --directory "$copy" --file=-
}

# source_date TREE: seconds since 1970 of the last change, so that the same tree gives the same package.
source_date() {
  git -C "$1" log -1 --format=%ct 2>/dev/null || stat --format=%Y "$1/CHANGELOG.md"
}

# require_built BUILD_TREE: says what it lacks of what is packaged.
require_built() {
  if ! [[ -x $1/bin/podqos-hook && -x $1/bin/podqosctl && -x $1/bin/podqos-nri ]]; then
    echo "build: PODQOS_BUILT=$1 holds no programs" >&2
    return 1
  elif ! [[ -e $1/packaging/man/podqosctl.1 ]]; then
    echo "build: PODQOS_BUILT=$1 holds no manual pages:" \
      "install pandoc, then run cmake for it and build all of it again" >&2
    return 1
  fi
}

# check_state TREE: the script that refuses to be installed over a newer state, for this version and what it reads.
check_state() {
  local version reads
  version=$(project_version "$1")
  reads=$(sed -n 's/^constexpr int kRecordVersion = \([0-9]*\);$/\1/p' "$1/common/codec/record_json.h")
  if [[ ! $version || ! $reads ]]; then
    echo "check_state: $1 has no version, or record_json.h names no kRecordVersion" >&2
    return 1
  fi
  sed -e "s/@VERSION@/$version/g" -e "s/@RECORD_VERSION@/$reads/g" "$1/packaging/removal/check-state.in"
}
