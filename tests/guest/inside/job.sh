# shellcheck shell=sh
# Runs the command; its output goes out by the serial line and its status to the run directory.
stty -F /dev/ttyS0 raw -echo
cd /
# In a subshell, so that this shell's word on how the command ended goes to the console.
(exec sh /run/guest/command </dev/null >/dev/ttyS0 2>&1)
echo $? >/run/guest/status
sync
stty -F /dev/ttyS0 sane # waits until the output has left
