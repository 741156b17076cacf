"""Asks podqos-nri for its pages, over a unix socket ("unix:/path") or a loopback address ("127.0.0.1:9464")."""

import contextlib
import http.client
import re
import selectors
import socket
import threading

import patience


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=patience.PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(patience.PATIENCE)
        self.sock.connect(self.path)


def request(address, path, method="GET"):
    """The answer, with its `text`."""
    if address.startswith("unix:"):
        connection = _UnixConnection(address.removeprefix("unix:"))
    else:
        host, port = address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=patience.PATIENCE)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        return answer
    finally:
        connection.close()


def samples(address):
    """{'podqos_pods{qos_class="Burstable",owner="podqos"}': 1.0, ...}"""
    lines = request(address, "/metrics").text.splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def tiers(address, name):
    """{cgroup: value} of a metric of the tiers."""
    found = ((re.search(f'^{name}{{.*cgroup="([^"]*)"', sample), value) for sample, value in samples(address).items())
    return {match[1]: value for match, value in found if match}


@contextlib.contextmanager
def idle_connections(address, number, addresses):
    """So many, at 127.0.0.2 and so on; gives a list that has one item for each that was closed and came again."""
    host, port = address.split(":")
    over, reopened = threading.Event(), []
    with selectors.DefaultSelector() as selector:
        def connect(index):
            client = socket.create_connection((host, int(port)), patience.PATIENCE, (f"127.0.0.{2 + index % addresses}", 0))
            client.sendall((b"", b"G", b"GET /healthz HTTP/1.1\r\n")[index % 3])
            selector.register(client, selectors.EVENT_READ, index)

        def come_again():
            while not over.is_set():
                for key, _ in selector.select(0.01):
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    connect(key.data)
                    reopened.append(key.data)

        for index in range(number):
            connect(index)
        thread = threading.Thread(target=come_again)
        thread.start()
        try:
            yield reopened
        finally:
            over.set()
            thread.join()
            for key in list(selector.get_map().values()):
                key.fileobj.close()
