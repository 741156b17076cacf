# shellcheck shell=sh
# show MODE HOST-DIRECTORY DIRECTORY: mounts a directory of the host, ro or rw. All the host's files are one file system,
# of which this is a part.
show() {
  if [ ! -d /tmp/host ]; then
    mkdir /tmp/host && mount -n -t virtiofs host /tmp/host || return
  fi
  mount -n --bind "/tmp/host$2" "$3" && mount -n -o "remount,bind,$1" "$3"
}
