# shellcheck shell=sh
# show MODE HOST-DIRECTORY DIRECTORY: mounts a directory of the host, ro or rw. By mount(2): hostfs takes a path, which
# the mount(8) of newer releases would pass on as the name of an option.
show() {
  LIBMOUNT_FORCE_MOUNT2=always mount -n -t hostfs -o "$1,$2" none "$3"
}
