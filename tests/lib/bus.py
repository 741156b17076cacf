"""What a traced program says to systemd: its D-Bus calls."""

import collections
import re
import struct

import syscalls

SOCKETS = (b"/run/systemd/private", b"/run/dbus/system_bus_socket")
METHOD_CALL, NO_REPLY_EXPECTED = 1, 1
MEMBER = re.compile(rb"\x03\x01s\0....([A-Za-z]+)\0", re.DOTALL)  # header field 3, of signature "s"

Said = collections.namedtuple("Said", "member unit")


def awaited_call(message):
    """The Said of a method call that wants an answer, of which all begin with a text; None for any other message."""
    if message[0:1] != b"l" or message[1] != METHOD_CALL or message[2] & NO_REPLY_EXPECTED:
        return None
    (size,) = struct.unpack_from("<I", message, 12)
    body = (16 + size + 7) // 8 * 8
    (length,) = struct.unpack_from("<I", message, body)
    return Said(MEMBER.search(message)[1].decode(), message[body + 4:body + 4 + length].decode())


def _address(argument):
    """The path in the text of a struct sockaddr_un, or nothing."""
    _, found, rest = argument.partition("sun_path=")
    return syscalls.text_of(rest) if found else None


def _bytes_sent(argument):
    """All that the vectors of a struct msghdr hold."""
    parts = argument.split("iov_base=")[1:]
    return b"".join(syscalls.text_of(part) or b"" for part in parts)


def awaited_calls(calls):
    """The D-Bus calls among the syscalls of syscalls.trace()."""
    found, connected = [], set()
    for call in calls:
        socket = (call.pid, call.arguments[0] if call.arguments else "")
        if call.name == "connect" and _address(call.arguments[1]) in SOCKETS and call.result == "0":
            connected.add(socket)
        elif call.name == "close":
            connected.discard(socket)
        elif socket in connected and call.name == "sendmsg":
            message = _bytes_sent(call.arguments[1])
            if int(call.result, 0) != len(message):
                raise RuntimeError(f"a message left in pieces, which this does not read: {call}")
            if said := awaited_call(message):
                found.append(said)
    return found
