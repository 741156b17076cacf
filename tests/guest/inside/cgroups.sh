# shellcheck shell=sh disable=SC2154
# Mounts the cgroup hierarchies as a machine of the flavour in $cgroup has them. A controller belongs to the hierarchy
# that takes it first: v1 must come before anything enables one on v2.

# present NAME...: those of the controllers that this kernel has, joined by commas.
present() {
  joined=
  for name in "$@"; do
    if grep -q "^${name}[[:space:]]" /proc/cgroups; then joined=${joined:+$joined,}$name; fi
  done
  echo "$joined"
}

# mount_set NAME...: one v1 hierarchy; where several controllers share it, each is also found by its own name.
mount_set() {
  set_name=$(present "$@")
  if [ -z "$set_name" ]; then return 0; fi
  mkdir "$set_name" && mount -n -t cgroup -o "$set_name" cgroup "$set_name" || return
  if [ "$set_name" = "$1" ]; then return 0; fi
  for name in "$@"; do
    if [ ! -e "$name" ]; then ln -s "$set_name" "$name" || return; fi
  done
}

# The hierarchies that systemd mounts on a v1 host.
mount_v1() {
  mount -n -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup && cd /sys/fs/cgroup || return
  mkdir systemd && mount -n -t cgroup -o none,name=systemd,xattr cgroup systemd || return
  mount_set cpu cpuacct && mount_set net_cls net_prio || return
  for controller in cpuset blkio memory devices freezer perf_event hugetlb pids; do
    mount_set "$controller" || return
  done
  cd /
}

# Every controller enabled for the children of the root, and PID 1 out of their way.
mount_v2() {
  mount -n -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup || return
  mkdir /sys/fs/cgroup/init && echo $$ >/sys/fs/cgroup/init/cgroup.procs || return
  read -r controllers </sys/fs/cgroup/cgroup.controllers
  for controller in $controllers; do
    echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || return
  done
}

case $cgroup in
  v1) mount_v1 ;;
  hybrid) mount_v1 && mkdir /sys/fs/cgroup/unified && mount -n -t cgroup2 cgroup2 /sys/fs/cgroup/unified ;;
  v2) mount_v2 ;;
esac
