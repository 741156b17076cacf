"""A runtime that does what a test tells it: the runtime's side of NRI, just enough of mux, ttrpc and protobuf."""

import os
import socket
import struct

import patience
import wire

PLUGIN, RUNTIME = 1, 2  # connections of the mux: who serves there
REQUEST, RESPONSE = 1, 2  # types of ttrpc


def field(number, content):
    """A field of text, bytes or a message, or one of an integer."""
    if isinstance(content, int):
        return wire.varint(number << 3) + wire.varint(content)
    content = content.encode() if isinstance(content, str) else content
    return wire.varint(number << 3 | wire.LENGTH) + wire.varint(len(content)) + content


def parse(message):
    """{number: content} of a message; the last of several counts."""
    return dict(wire.pieces(message))


def fields(number, texts):
    """A map of texts."""
    return b"".join(field(number, field(1, key) + field(2, value)) for key, value in texts.items())


def optional(number, value):
    """A number whose absence is something else than 0."""
    return b"" if value is None else field(number, field(1, value))


def resources(shares=None, quota=None, memory=None):
    """LinuxResources."""
    cpu = optional(1, shares) + optional(2, quota) + optional(3, quota and 100_000)
    return field(1, optional(1, memory)) + field(2, cpu)


def frame(connection, content):
    return struct.pack(">II", connection, len(content)) + content


def message(stream, kind, envelope):
    return struct.pack(">IIBB", len(envelope), stream, kind, 0) + envelope


def call(stream, method, payload=b"", budget=None):
    """`budget` in seconds: after them the runtime gives the plugin up."""
    envelope = field(1, "nri.pkg.api.v1alpha1.Plugin") + field(2, method) + field(3, payload)
    if budget is not None:
        envelope += field(4, int(budget * 1e9))
    whole = message(stream, REQUEST, envelope)
    return frame(PLUGIN, whole[:4096]) + (frame(PLUGIN, whole[4096:]) if len(whole) > 4096 else b"")


class Refused(AssertionError):
    """The plugin has answered with an error."""


class Connection:
    """The runtime's end of a connection to one plugin."""

    def __init__(self, sock):
        self.socket = sock
        self.socket.settimeout(patience.PATIENCE)
        self.stream = 1
        self.streams = {PLUGIN: b"", RUNTIME: b""}
        self.identity = None  # (index, name)

    def close(self):
        self.socket.close()

    def _receive(self, size):
        out = b""
        while len(out) < size:
            piece = self.socket.recv(size - len(out))
            if not piece:
                raise EOFError("the plugin has closed the connection")
            out += piece
        return out

    def next(self, connection):
        """The next (stream, type, envelope) of that connection."""
        while True:
            content = self.streams[connection]
            if len(content) >= 10:
                size, stream, kind, _ = struct.unpack(">IIBB", content[:10])
                if len(content) >= 10 + size:
                    self.streams[connection] = content[10 + size :]
                    return stream, kind, content[10 : 10 + size]
            number, size = struct.unpack(">II", self._receive(8))
            self.streams[number] += self._receive(size)

    def ask(self, method, payload=b"", budget=None):
        """The payload of the plugin's answer."""
        self.socket.sendall(call(self.stream, method, payload, budget))
        stream, kind, envelope = self.next(PLUGIN)
        if (stream, kind) != (self.stream, RESPONSE):
            raise AssertionError(f"answer {stream} of type {kind} to call {self.stream}")
        self.stream += 2
        answer = parse(envelope)
        if 1 in answer:
            raise Refused(f"{method}: {parse(answer[1])[2].decode()}")
        return answer.get(2, b"")

    def register(self):
        stream, _, envelope = self.next(RUNTIME)
        registration = parse(parse(envelope)[3])
        self.identity = (registration[2].decode(), registration[1].decode())
        self.socket.sendall(frame(RUNTIME, message(stream, RESPONSE, b"")))

    def configure(self, config="", version="v0.12.2"):
        """The events that the plugin asks for."""
        payload = (field(1, config) if config else b"") + field(2, "containerd") + field(3, "v2.3.0") + field(6, version)
        return parse(self.ask("Configure", payload))[2]

    def welcome(self, config=""):
        """All that a runtime does before the first event."""
        self.register()
        self.configure(config)
        self.ask("Synchronize")
        return self

    def ended(self):
        """Waits for the plugin to close the connection."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return True


class Runtime:
    """Listens for plugins. The socket's file stays when it stops, as a killed runtime leaves it, and nothing else."""

    def __init__(self, path):
        if os.path.exists(path):
            os.unlink(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(str(path))
        self.socket.listen(8)
        self.socket.settimeout(patience.PATIENCE)
        self.connections = []

    def accept(self):
        self.connections.append(Connection(self.socket.accept()[0]))
        return self.connections[-1]

    def stop(self):
        self.socket.close()
        for connection in self.connections:
            connection.close()
