# shellcheck shell=bash
# The guest as a PC in qemu's emulation, with Debian's kernel for such machines. For boot, whose variables it uses and
# sets. KVM is not asked for: where it is there it may still not work, and the few tests run everywhere alike.
# shellcheck disable=SC2154,SC2034,SC2054  # an argument of qemu or the kernel may have commas

# A short path without blanks: it goes into the address of a socket and onto the kernel's command line.
run_directory_parent() {
  local directory
  for directory in "${TMPDIR:-/tmp}" /tmp /var/tmp; do
    if [[ -w $directory && ${#directory} -le 60 && $directory != *[[:space:],\"]* ]]; then
      realpath -- "$directory"
      return
    fi
  done
  return 1
}

find_machine() {
  local free need reason
  ((EUID == 0)) || cannot "only root can share this machine's files with qemu"
  emulator=$(command -v qemu-system-x86_64) || cannot "qemu-system-x86 is not installed"
  for sharer in /usr/lib/qemu/virtiofsd /usr/libexec/virtiofsd ''; do
    if [[ -x $sharer ]]; then break; fi
  done
  [[ $sharer ]] || cannot "virtiofsd is not installed (qemu-system-common)"
  free=$(awk '$1 == "MemAvailable:" {print $2}' /proc/meminfo)
  need=$(numfmt --from=iec "$mem")
  ((free > need / 1024)) || cannot "this machine has less than $mem of memory free"
  runs=$(run_directory_parent) || cannot "no temporary directory with a short path (TMPDIR, /tmp, /var/tmp)"
  if ! kernel=$("$here/mkkernel" 2>&1); then cannot "$kernel"; fi
  modules=$kernel/modules
}

# The console is on descriptor 1, the command's output on 3: the second and the first serial line.
# With --count the clock goes on by a nanosecond for each instruction, and skips the time in which there is none to execute.
# A page table of five levels, which "max" includes, costs time and is of no use.
compose_machine() {
  local pace=(-accel "tcg,thread=multi")
  if ((count)); then pace=(-accel "tcg,thread=single" -icount "shift=0,sleep=off"); fi
  machine=(
    "$here/machine/share-host" "$sharer" "$dir/host.socket"
    "$emulator" -machine q35,memory-backend=memory "${pace[@]}" -cpu max,la57=off -smp "$cpus" -m "$mem"
    -object "memory-backend-memfd,id=memory,size=$mem,share=on" -nodefaults -no-reboot -display none
    -chardev "socket,id=host,path=$dir/host.socket" -device vhost-user-fs-pci,chardev=host,tag=host
    -chardev file,id=output,path=/dev/fd/3 -serial chardev:output
    -chardev file,id=console,path=/dev/fd/1 -serial chardev:console
    -kernel "$kernel/vmlinuz" -initrd "$kernel/initrd"
    -append "console=ttyS1 mitigations=off ${kernel_options[*]} -- $root $dir"
  )
}
