# shellcheck shell=sh
# show MODE HOST-DIRECTORY DIRECTORY: mounts a directory of the host, ro or rw.
show() {
  mount -n -t hostfs -o "$1,$2" none "$3"
}
