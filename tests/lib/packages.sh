# shellcheck shell=bash
# The Debian packages that podqos needs, and how to install those that are missing.
# Sourced by tests/run and tests/demo, which read the lists:
# shellcheck disable=SC2034

# To build the programs.
packages_build=(
  g++ cmake ninja-build pkg-config
  nlohmann-json3-dev libspdlog-dev libfmt-dev libseccomp-dev libcli11-dev libyaml-dev
  libdbus-1-dev libprotozero-dev libtomlplusplus-dev
)
# To build the unit tests: Google's protobuf reads what podqos writes, and the other way round.
packages_unit=(libgtest-dev libgmock-dev libprotobuf-dev protobuf-compiler)
# To start containers with them.
packages_containers=(runc crun busybox-static python3 procps util-linux)
# To build the packages and look at them.
packages_packaging=(debhelper dpkg-dev fakeroot lintian pandoc rpm rpmlint cpio)
# To test them.
packages_testing=(
  "${packages_unit[@]}" golang-go
  clang-19 libclang-rt-19-dev lld-19 clang-tidy-19 clang-format-19 shellcheck codespell
  strace valgrind attr libcap2-bin man-db pandoc git
  python3-prometheus-client
  zsh fish
)
# To make the documents a site, as a lint does.
packages_testing+=(mkdocs)
# To test them in a guest: its kernel, what boots in it, and what makes it a root of a newer release.
packages_testing+=(user-mode-linux patchelf systemd dbus mmdebstrap debian-archive-keyring)
# For what that kernel lacks: an emulated machine, and the service that shows it our files (qemu-system-common).
packages_testing+=(qemu-system-x86)

# To build the container image, and to render and check the manifests of Kubernetes.
packages_packaging+=(buildah binutils)
packages_testing+=(python3-kubernetes golang-github-masterminds-sprig-dev)

# To look at a report in a browser, which is too much (100 MB) for every day.
packages_all=(chromium-headless-shell)

is_installed() {
  [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

# install_packages NAME...: does nothing, and needs no network, when all are there.
install_packages() {
  local name missing=()
  for name in "$@"; do
    is_installed "$name" || missing+=("$name")
  done
  if ((${#missing[@]} == 0)); then
    return 0
  fi
  if ((EUID != 0)); then
    echo "these packages are missing, and only root can install them: ${missing[*]}" >&2
    return 1
  fi
  echo "installing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q </dev/null
  apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null
}
