# shellcheck shell=sh
# Prepares the root for systemd as PID 1: what boots is guest.target, and of what this root starts at boot only what a
# test needs, for the root may be that of a machine with disks, networks and services.
units=/run/systemd/system
mkdir -p "$units" /run/systemd/system-generators
cp /run/guest/guest.target /run/guest/guest-job.service "$units"

# An identity, and the marks of an update that is done: without them this is a first boot, which asks questions.
rm -f /etc/machine-id
tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
touch /etc/.updated /var/.updated

# An empty file masks what has the same name elsewhere, and costs no process.
# No generator: they turn fstab, crypttab and the like of the root's own machine into units.
for generator in /lib/systemd/system-generators/* /usr/local/lib/systemd/system-generators/* \
  /etc/systemd/system-generators/*; do
  : >"/run/systemd/system-generators/${generator##*/}"
done

# Of the units that any target on the way to guest.target wants. tmpfiles above all must not run: it empties /tmp.
for unit in /lib/systemd/system/*.target.wants/* /etc/systemd/system/*.target.wants/*; do
  case ${unit##*/} in
    '*' | *.target | dbus.* | systemd-journald* | -.slice | system.slice) ;;
    *) : >"$units/${unit##*/}" ;;
  esac
done
for unit in tmp.mount systemd-remount-fs.service systemd-tmpfiles-clean.timer systemd-journal-flush.service; do
  : >"$units/$unit"
done
