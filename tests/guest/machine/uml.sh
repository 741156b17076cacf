# shellcheck shell=bash
# The guest as a process of this machine: Debian's user-mode-linux kernel. For boot, whose variables it uses and sets.
# The newer kernel that mkuml fetches is faster, but lacks the memory controller of v1.
# shellcheck disable=SC2154,SC2034,SC2054  # an argument of qemu or the kernel may have commas

how=() # options that only the newer kernel knows

# The guest's memory is a file that the kernel maps executable. Prints the first directory that can hold it.
memory_directory() {
  local need directory free probe
  need=$(numfmt --from=iec "$mem")
  for directory in /dev/shm "${TMPDIR:-/tmp}" /tmp /var/tmp; do
    if [[ ! -w $directory || $directory == *[[:space:]]* ]]; then continue; fi
    free=$(df --block-size=1 --output=avail -- "$directory" | tail -n 1)
    if ((free < need)); then continue; fi
    probe=$(mktemp "$directory/podqos-guest.XXXXXX")
    cp /bin/true "$probe" && chmod 700 "$probe"
    if "$probe" 2>/dev/null; then
      rm -f "$probe"
      echo "$directory"
      return
    fi
    rm -f "$probe"
  done
  return 1
}

find_kernel() {
  local newer said
  kernel=$(command -v linux.uml) || cannot "user-mode-linux is not installed"
  modules=/usr/lib/uml/modules
  [[ -d $modules ]] || cannot "the kernel's modules are missing ($modules)"
  if [[ ${cgroup:-v2} != v2 || ${PODQOS_GUEST_KERNEL:-} == installed ]]; then return; fi
  said=/dev/null
  if [[ ${PODQOS_GUEST_VERBOSE:-} == 1 ]]; then said=/dev/stderr; fi
  if newer=$("$here/mkuml" 2>"$said"); then
    kernel=$newer/linux.uml modules=$newer/modules how=(seccomp=auto)
  fi
}

find_machine() {
  find_kernel
  runs=$(memory_directory) ||
    cannot "no temporary directory has $mem free and lets programs run (/dev/shm, TMPDIR, /tmp, /var/tmp)"
}

# The guest's one processor hands over between its processes at every system call, which costs half as much where they all
# share one CPU as across several. Prints the CPU that runs fewest processes of guests.
choose_cpu() {
  local ranges range cpu used
  ranges=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
  used=$(pgrep -x linux.uml | sed 's|.*|/proc/&/status|' |
    xargs --no-run-if-empty sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' 2>/dev/null) || true
  for range in ${ranges//,/ }; do
    for cpu in $(seq "${range%-*}" "${range#*-}"); do
      echo "$(grep -cx "$cpu" <<<"$used") $RANDOM $cpu"
    done
  done | sort -n | sed -n '1s/.* //p'
}

# As Debian's kernels, it logs the time of each line. con0, the console, is on descriptor 1; ssl0, the serial line with the
# command's output, on 3. hostfs takes a path, which the mount(8) of newer releases would pass on as the name of an
# option.
compose_machine() {
  machine=(
    env TMPDIR="$runs" taskset --cpu-list "$(choose_cpu)"
    "$kernel" mem="$mem" uml_dir="$dir" umid=uml root=/dev/root rootfstype=hostfs rootflags="$root" ro printk.time=1
    con=null con0=null,fd:1 ssl=null ssl0=null,fd:3 noreboot "${how[@]}" "${kernel_options[@]}"
    init=/bin/sh -- -c "\"LIBMOUNT_FORCE_MOUNT2=always mount -n -t hostfs -o $dir none /mnt && exec sh /mnt/root.sh\""
  )
}
