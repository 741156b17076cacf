# shellcheck shell=sh disable=SC2154  # the settings are not there yet
# PID 1, second stage, on the copy-on-write root: either systemd takes over, or this shell runs the command itself.
# shellcheck source=/dev/null
. /run/guest/settings

umount -l /old-root && rmdir /old-root
echo guest >/proc/sys/kernel/hostname # Podman refuses the kernel's own "(none)"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb

if [ "$pid1" = systemd ]; then
  . /run/guest/systemd.sh
  exec /lib/systemd/systemd --unit=guest.target
fi

mkdir -p /dev/pts /dev/shm
ln -sf /proc/self/fd /dev/fd
ln -sf fd/0 /dev/stdin
ln -sf fd/1 /dev/stdout
ln -sf fd/2 /dev/stderr
mount -n -t devpts devpts /dev/pts
mount -n -t tmpfs tmpfs /dev/shm
ip link set lo up 2>/dev/null || busybox ip link set lo up
if . /run/guest/cgroups.sh; then
  sh /run/guest/job.sh
fi
echo o >/proc/sysrq-trigger
while :; do sleep 1; done
