"""Runs a command on a terminal of a given width, of which the kernel's pseudo terminals serve as one.

    status, text = terminal.run(["podqosctl", "status"], 80)
    text = terminal.plain(text)   # without colours
"""

import fcntl
import os
import re
import struct
import subprocess
import termios

LINES = 24


def run(command, columns, keys=(), **environment):
    """Exit status, and what the terminal was sent. `keys` has what is typed once a text was shown."""
    keys = dict(keys)
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    shown, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal,
                          env={**inherited, "TERM": "xterm", **environment}) as process:
        os.close(terminal)
        text = b""
        while True:
            try:
                text += os.read(shown, 1 << 16)
            except OSError:  # EIO: the last who had it open has closed it
                break
            for seen in [each for each in keys if each.encode() in text]:
                os.write(shown, keys.pop(seen).encode())
        os.close(shown)
        return process.wait(), text.decode().replace("\r\n", "\n")


def plain(text):
    """Without the sequences of ECMA-48 that set colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
