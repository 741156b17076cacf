"""What a traced program says to systemd: its D-Bus calls, and how often it waits for an answer."""

import collections
import struct

import syscalls

SOCKETS = (b"/run/systemd/private", b"/run/dbus/system_bus_socket")
METHOD_CALL, NO_REPLY_EXPECTED = 1, 1
MEMBER, SIGNATURE = 3, 8  # header fields
ALIGNMENT = {"y": 1, "g": 1, "v": 1, "(": 8, "t": 8}  # 4 for all others
NUMBERS = {"y": "<B", "b": "<I", "u": "<I", "t": "<Q"}

# A method with its arguments as busctl(1) wants them, the unit first.
Said = collections.namedtuple("Said", "member signature words")


def _align(position, to):
    return (position + to - 1) // to * to


def _first_type(signature):
    """The first complete type of a signature."""
    if signature[0] == "a":
        return "a" + _first_type(signature[1:])
    if signature[0] != "(":
        return signature[0]
    depth = 0
    for position, character in enumerate(signature):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return signature[:position + 1]
    raise ValueError(signature)


def _words(signature, message, position):
    """The values of a signature as busctl writes them, and the position behind them."""
    words = []
    while signature:
        kind = _first_type(signature)
        signature = signature[len(kind):]
        found, position = _value(kind, message, _align(position, ALIGNMENT.get(kind[0], 4)))
        words += found
    return words, position


def _value(kind, message, position):
    if kind in NUMBERS:
        (number,) = struct.unpack_from(NUMBERS[kind], message, position)
        return [str(number)], position + struct.calcsize(NUMBERS[kind])
    if kind in "sog":
        size_format = "<B" if kind == "g" else "<I"
        (size,) = struct.unpack_from(size_format, message, position)
        begin = position + struct.calcsize(size_format)
        return [message[begin:begin + size].decode("utf-8")], begin + size + 1
    if kind == "v":
        (signature,), position = _value("g", message, position)
        words, position = _words(signature, message, position)
        return [signature, *words], position
    if kind[0] == "(":
        return _words(kind[1:-1], message, position)
    if kind[0] == "a":
        return _array(kind[1:], message, position)
    raise ValueError(f"D-Bus type {kind}")


def _array(kind, message, position):
    (size,) = struct.unpack_from("<I", message, position)
    position = _align(position + 4, ALIGNMENT.get(kind[0], 4))
    end, count, words = position + size, 0, []
    while position < end:
        found, position = _words(kind, message, position)
        words += found
        count += 1
    return [str(count), *words], position


def awaited_call(message):
    """The Said of a method call that wants an answer; None for any other message."""
    if message[0:1] != b"l" or message[1] != METHOD_CALL or message[2] & NO_REPLY_EXPECTED:
        return None
    (size,) = struct.unpack_from("<I", message, 12)
    fields, position = {}, 16
    while position < 16 + size:
        position = _align(position, 8)
        code = message[position]
        (_, fields[code]), position = _value("v", message, position + 1)
    signature = fields.get(SIGNATURE, "")
    return Said(fields[MEMBER], signature, _words(signature, message, _align(16 + size, 8))[0])


def _address(argument):
    """The path in the text of a struct sockaddr_un, or nothing."""
    _, found, rest = argument.partition("sun_path=")
    return syscalls.text_of(rest) if found else None


def _bytes_sent(argument):
    """All that the vectors of a struct msghdr hold."""
    parts = argument.split("iov_base=")[1:]
    return b"".join(syscalls.text_of(part) or b"" for part in parts)


def round_trips(calls):
    """The calls among the syscalls of syscalls.trace(), in groups: those of one were made before any was answered.

    The end of the authentication is no call and is not counted.
    """
    trips, connected, answered = [], set(), True
    for call in calls:
        socket = (call.pid, call.arguments[0] if call.arguments else "")
        if call.name == "connect" and _address(call.arguments[1]) in SOCKETS and call.result == "0":
            connected.add(socket)
        elif call.name == "close":
            connected.discard(socket)
        elif socket in connected and call.name == "recvmsg":
            answered = answered or not call.result.startswith("-")
        elif socket in connected and call.name == "sendmsg":
            message = _bytes_sent(call.arguments[1])
            if int(call.result, 0) != len(message):
                raise RuntimeError(f"a message left in pieces, which this does not read: {call}")
            said = awaited_call(message)
            if said is None:
                continue
            if answered:
                trips.append([])
                answered = False
            trips[-1].append(said)
    return trips
