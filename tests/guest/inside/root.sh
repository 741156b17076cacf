# shellcheck shell=sh disable=SC2154  # the settings are not there yet
# PID 1, first stage: / is the root file system of the host, read-only, and /mnt the run directory. Lays a tmpfs over
# the root and makes that the guest's root. Where a command fails PID 1 ends, and with it the guest.
# mount -n: the root may have a plain file as its mtab.
set -e
# shellcheck source=/dev/null
. /mnt/settings
# shellcheck source=tests/guest/inside/host_uml.sh
. "/mnt/host_$kind.sh"

mount -n -t proc proc /proc
mount -n -t tmpfs -o mode=755 tmpfs /tmp
cd /tmp
mkdir lower upper root modules
show ro "$modules" modules
overlay=modules/$(uname -r)/kernel/fs/overlayfs/overlay.ko
insmod "$overlay" 2>/dev/null || busybox insmod "$overlay"
mount -n --bind / lower
mount -n -t tmpfs -o size=90% tmpfs upper
mkdir upper/files upper/work
mount -n -t overlay -o lowerdir=lower,upperdir=upper/files,workdir=upper/work overlay root

cd root
mkdir -p usr/lib/modules old-root
mount -n --move /proc proc
mount -n -t sysfs sysfs sys
mount -n -t devtmpfs devtmpfs dev
mount -n -t tmpfs -o mode=755 tmpfs run
mkdir run/guest
mount -n --move /mnt run/guest
mount -n --move /tmp/modules usr/lib/modules
mount_shares
pivot_root . old-root
exec chroot . sh /run/guest/start.sh </dev/null >/dev/console 2>&1
