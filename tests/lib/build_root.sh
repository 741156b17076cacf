# shellcheck shell=bash
# Roots of Debian's releases to build podqos in, each with its compilers, and builds in them. They are made by mmdebstrap
# from the archive that apt uses on this machine, and kept: the next call takes no time. Sourced by tests/arm64 and
# tests/compilers, at the top of the tree, after tests/lib/packages.sh.

build_roots=$PWD/build/build-root
root_limit=1800 # seconds; a root takes two minutes

# A build needs root for chroot, and mmdebstrap.
prepare_builds() {
  if ((EUID != 0)); then
    echo "$0 builds in roots of other releases: run it as root" >&2
    exit 2
  fi
  install_packages mmdebstrap debian-archive-keyring
}

# make_build_root SUITE ARCHITECTURE[,ARCHITECTURE] PACKAGE...: sets root to the directory.
make_build_root() {
  local suite=$1 architectures=$2 archive include hash work
  shift 2
  hash=$(printf '%s\n' "$suite" "$architectures" "$@" | sha256sum)
  root=$build_roots/$suite-${hash:0:12}
  if [[ -d $root ]]; then
    return
  fi
  # shellcheck disable=SC2016  # apt fills these in
  archive=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
  if [[ ! $archive ]]; then
    echo "apt has no Debian archive in its lists (apt-get update?)" >&2
    exit 1
  fi
  mkdir -p "$build_roots"
  work=$(mktemp -d "$build_roots/part.XXXXXX")
  include=$(IFS=,; echo "$*")
  echo "making a root of $suite in $root"
  # What only people read is left out; an archive that stands still outlives the date that a release which moves carries.
  if ! timeout --kill-after=10 "$root_limit" mmdebstrap --variant=essential --architectures="$architectures" \
    --include="$include" \
    --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Check-Valid-Until "false"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    "$suite" "$work/root" "deb $archive $suite main" >"$work.log" 2>&1 </dev/null; then
    tail -n 20 "$work.log" >&2
    rm -rf --one-file-system -- "$work" "$work.log"
    exit 1
  fi
  mv -T -- "$work/root" "$root"
  rm -r -- "$work" "$work.log"
}

# in_build_root DIRECTORY CMD...: in a copy-on-write view of $root, with this tree, of which DIRECTORY alone is writable. A
# compiler cache that the environment asks for is used there, too.
in_build_root() {
  local shown=(--write "$1")
  if [[ ${CCACHE_DIR:-} ]]; then
    shown+=(--write "$CCACHE_DIR")
  fi
  env -u CC -u CXX tests/guest/chrooted "${shown[@]}" "$root" "$PWD" "${@:2}"
}

# Arguments of ctest, which choose among the tests.
chosen=()

# build_and_test PRESET DIRECTORY [CMAKE_ARGUMENT...]: builds all in DIRECTORY, and runs the unit tests.
build_and_test() {
  local directory=$PWD/$2
  mkdir -p "$directory"
  in_build_root "$directory" cmake -S "$PWD" -B "$directory" --preset "$1" -DPODQOS_BUILD_TESTING=ON -DPODQOS_UNITY=ON \
    -DPODQOS_LTO=OFF "${@:3}"
  in_build_root "$directory" cmake --build "$directory"
  in_build_root "$directory" ctest --test-dir "$directory" --output-on-failure --no-tests=error -R '^unit-' \
    ${chosen[@]+"${chosen[@]}"} </dev/null
}
