"""The state's file `rows` (common/core/record.h, PodRow): a head, then a row for each pod."""

import struct

SIZE = 256
# Hash and text of the uid, the tree, CPU and memory as requested and as counted, times and processes, containers,
# class and flags.
ROW = struct.Struct("=Q128sQqqqqqqqqIBBBBB39x")
CLASSES = ("Guaranteed", "Burstable", "BestEffort")


def fnv1a(text):
    found = 0xcbf29ce484222325
    for byte in text:
        found = (found ^ byte) * 0x100000001b3 % 2**64
    return found


def head(count):
    return f"podqos rows 1, {count}\n".encode("ascii").ljust(SIZE, b"\0")


def pieces(content):
    """The rows of the file's content that a pod has."""
    return [row for at in range(SIZE, len(content), SIZE) if (row := content[at:at + SIZE])[8]]


def taken(state):
    """Those of a state directory, unpacked."""
    return [ROW.unpack(piece) for piece in pieces((state / "rows").read_bytes())]


def sums(state, qos_class):
    """{"pods", "cpuMilli", "memoryBytes"} of the pods of a class that count."""
    total = {"pods": 0, "cpuMilli": 0, "memoryBytes": 0}
    for _, _, _, _, _, cpu, memory, *_, of_class, _, counts, _, _ in taken(state):
        if counts and CLASSES[of_class] == qos_class:
            for name, value in (("pods", 1), ("cpuMilli", cpu), ("memoryBytes", memory)):
                total[name] += value
    return total


def copy(state, uid, others):
    """Gives each of `others` the row of a pod."""
    found = taken(state)
    (own,) = (row for row in found if row[1].rstrip(b"\0") == uid.encode("ascii"))
    found += [(fnv1a(other.encode("ascii")), other.encode("ascii"), *own[2:]) for other in others]
    (state / "rows").write_bytes(head(len(found)) + b"".join(ROW.pack(*row) for row in found))
